#!/usr/bin/env bash
# The project's tests.
#
#   tests/run.sh            all parts, the quick ones first; some beside others
#   tests/run.sh PART ...   only these; `tests/run.sh --list` names them
#
# Needs git and Python 3.11 or newer; makes .venv and installs what requirements/ pins. Nothing outside the checkout is
# changed but ansible-test's own cache in ~/.ansible. The last line is `N passed, N failed`: the tests that pytest counted,
# and one for each other part. What a part printed is kept in .cache/tests/PART.log, and shown where it failed.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root" || exit 2
# shellcheck source=tests/parts.sh
source tests/parts.sh

LOGS=$CACHE/tests
PARTS=(
    shell ruff format yaml types changelog galaxy docs lint sanity next-sanity next-rehearsal hosts
    unit units integration molecule rehearsal next-unit
)
# A part that leaves one core free, and the one that is begun with it: `hosts` mostly waits for its machines, and each
# that stands before it takes one core.
declare -A BESIDE=([shell]=hosts [integration]=molecule)
EXTRA_PARTS=(mutations properties worlds plans bench docker faults)

# limit PART: the seconds after which it is ended
limit() {
    case $1 in
        units | mutations | properties | worlds | bench) echo 2400 ;;
        unit | rehearsal | next-unit) echo 1200 ;;
        faults) echo 7200 ;;
        hosts | docker) echo 1500 ;; # from nothing: what a host is made of is fetched and unpacked first
        *) echo 900 ;;
    esac
}

if [[ ${1:-} == --inner ]]; then # one part in a process of its own, so that a time limit can end it
    "part_${2//-/_}"
    exit
fi
if [[ ${1:-} == --list ]]; then
    printf '%s\n' "${PARTS[@]}" "${EXTRA_PARTS[@]}"
    exit 0
fi

wanted=("$@")
(($#)) || wanted=("${PARTS[@]}")
for part in "${wanted[@]}"; do
    if [[ " ${PARTS[*]} ${EXTRA_PARTS[*]} " != *" $part "* ]]; then
        echo "tests/run.sh: there is no part '$part'; --list names them" >&2
        exit 2
    fi
done

passed=0 failed=0 skipped=0
broken=()
declare -A pids began # of the parts that run
trap 'kill "${pids[@]}" 2>/dev/null; wait' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# tally LOG: the sums of every closing line of pytest in it, as `passed failed skipped`
tally() {
    sed -e 's/\x1b\[[0-9;]*m//g' "$1" | awk '
        / in [0-9.]+s/ && /[0-9] (passed|failed|error|errors|skipped)/ {
            n = split($0, words, /[ ,=]+/)
            for (i = 2; i <= n; i++) {
                if (words[i] == "passed") passed += words[i - 1]
                if (words[i] == "failed" || words[i] ~ /^errors?$/) failed += words[i - 1]
                if (words[i] == "skipped") skipped += words[i - 1]
            }
        }
        END { print passed + 0, failed + 0, skipped + 0 }'
}

# start PART: begins it, under its time limit
start() {
    timeout --kill-after=20 "$(limit "$1")" bash tests/run.sh --inner "$1" >"$LOGS/$1.log" 2>&1 </dev/null &
    pids[$1]=$! began[$1]=$SECONDS
}

# finish PART: waits for its end and adds what it counted to the sums
finish() {
    local part=$1 log=$LOGS/$1.log status p=0 f=0 s=0 word
    wait "${pids[$part]}"
    status=$?
    unset "pids[$part]"
    read -r p f s < <(tally "$log")
    if ((status == SKIPPED)); then
        word=skipped s=$((s + 1))
    elif ((status == 0)); then
        word=passed
        ((p + f + s)) || p=1
    else
        word=failed
        ((f)) || f=1
        ((status == 124)) && echo "stopped after its limit of $(limit "$part") seconds" >>"$log"
        broken+=("$part")
    fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    printf '%-16s %-8s %5d s   %d passed, %d failed, %d skipped\n' "$part" "$word" $((SECONDS - ${began[$part]})) "$p" "$f" "$s"
    if [[ $word == failed ]]; then
        printf -- '----- %s\n' "$part"
        # What installs print is long, and seldom why a part failed.
        grep -avE '^(Looking in|WARNING: Location|Collecting|Processing|Requirement already|Using cached|Installing|Successfully installed|Running sanity test| +(Downloading|Using cached|Attempting|Found existing|Uninstalling|Successfully uninstalled|━))' \
            "$log" | cut -c1-400 | tail -n 120
        printf -- '----- end of %s\n' "$part"
    elif [[ $word == skipped ]]; then
        tail -n 1 "$log"
    fi
}

main() {
    local since=$SECONDS part beside
    mkdir -p "$LOGS"
    if ! set_up >"$LOGS/set-up.log" 2>&1 </dev/null; then
        tail -n 60 "$LOGS/set-up.log"
        echo "0 passed, 1 failed"
        return 1
    fi
    printf '%-16s %-8s %5d s\n' set-up 'done' $((SECONDS - since))
    for part in "${wanted[@]}"; do
        if [[ -z ${pids[$part]:-} ]]; then start "$part"; fi
        beside=${BESIDE[$part]:-}
        if [[ -n $beside && -z ${began[$beside]:-} && " ${wanted[*]} " == *" $beside "* ]]; then start "$beside"; fi
        finish "$part"
    done
    printf 'in all %d s' $((SECONDS - since))
    if ((${#broken[@]})); then printf '; failed: %s' "${broken[*]}"; fi
    printf '\n%d passed, %d failed' "$passed" "$failed"
    if ((skipped)); then printf ', %d skipped' "$skipped"; fi
    printf '\n'
    ((failed == 0))
}

# Read to its end before it begins, so that an edit of this file does not reach a run.
main
exit
