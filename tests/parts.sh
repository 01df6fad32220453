# shellcheck shell=bash
# The parts of tests/run.sh, each a function part_NAME that says what it found and returns 0, SKIPPED, or anything else for
# a failure. Sourced from the root of the checkout.

SKIPPED=77
CACHE=$PWD/.cache
TREE=$CACHE/ansible_collections/kvfleet/radiance
NEXT=$PWD/.venv-next # the newest ansible-core
PYTHONS=$CACHE/pythons

export LC_ALL=C.UTF-8 ANSIBLE_NOCOLOR=1 NO_COLOR=1 PY_COLORS=0 PIP_DISABLE_PIP_VERSION_CHECK=1
unset ANSIBLE_CONFIG ANSIBLE_FORCE_COLOR ANSIBLE_COLLECTIONS_PATH FORCE_COLOR GET_PIP PYTHONPATH VIRTUAL_ENV
export PATH=$PWD/.venv/bin:$PYTHONS:$PATH

# ---------------------------------------------------------------------------------------------------------------- set-up

# find_python VERSION: the path of a Python that runs and can make environments; a pyenv shim may be none
find_python() {
    local candidate
    while read -r candidate; do
        "$candidate" - "$1" <<'PY' 2>/dev/null && return
import ensurepip, os, ssl, sys, venv
if "%d.%d" % sys.version_info[:2] != sys.argv[1]:
    raise SystemExit(1)
print(os.path.realpath(sys.executable))
PY
    done < <(
        type -aP "python$1"
        compgen -G "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1*/bin/python$1"
    )
    return 1
}

# environment FOLDER REQUIREMENTS... -- PYTHON_VERSION...: a virtual environment with these requirements, made or renewed
# only when they have changed
environment() {
    local folder=$1 files=() version python="" stamp
    shift
    while [[ $1 != -- ]]; do
        files+=("$1")
        shift
    done
    shift
    stamp=$folder/.installed-for-tests
    if [[ ! -x $folder/bin/python ]] || ! "$folder/bin/python" -c ''; then
        for version in "$@"; do
            python=$(find_python "$version") && break
        done
        [[ -n $python ]] || return "$SKIPPED"
        rm -rf "$folder"
        "$python" -m venv "$folder" || return 1
    fi
    if ! cat "${files[@]}" | cmp -s - "$stamp"; then
        "$folder/bin/python" -m pip install -q "${files[@]/#/--requirement=}" || return 1
        cat "${files[@]}" >"$stamp"
    fi
}

set_up() {
    local version path
    command -v git || return 1
    mkdir -p "$PYTHONS"
    environment .venv requirements/controller.txt requirements/test.txt -- 3.11 3.12 3.13 || {
        echo "tests/run.sh needs Python 3.11, 3.12 or 3.13 with venv, and the packages of requirements/"
        return 1
    }
    for version in 3.9 3.10 3.11 3.12 3.13; do
        if path=$(find_python "$version"); then ln -sfn "$path" "$PYTHONS/python$version"; fi
    done
}

# sources PATTERN...: the files of the checkout that match, committed or about to be, one a line
sources() {
    local file
    git ls-files -co --exclude-standard -- "$@" | sort -u | while read -r file; do
        # The links of collections/ lead to files that are listed anyway. (An exclusion among the patterns of git
        # ls-files takes everything away where the others have a longer prefix in common.)
        if [[ $file != collections/* && -f $file ]]; then printf '%s\n' "$file"; fi
    done
}

# tree: copies the sources to a folder whose path ansible-test accepts, in a repository of its own; goes there
tree() {
    mkdir -p "$TREE/tests"
    find "$TREE" -mindepth 1 -maxdepth 1 ! -name .git ! -name tests -exec rm -rf {} +
    find "$TREE/tests" -mindepth 1 -maxdepth 1 ! -name output -exec rm -rf {} +
    sources | tar -cf - -T - | tar -xf - -C "$TREE" || return 1
    [[ -d $TREE/.git ]] || git init -q "$TREE" || return 1
    export ANSIBLE_COLLECTIONS_PATH=$CACHE
    cd "$TREE" || return 1
}

# with_tree COMMAND...: runs it in the tree, alone
with_tree() {
    (
        exec 9>"$CACHE/tree.lock"
        flock 9
        tree && "$@" 9>&-
    )
}

# seed: ansible-test fetches a get-pip script where there is none; this one uses the pip that Python brings
seed() {
    local name cache=$HOME/.ansible/test/cache
    mkdir -p "$cache"
    for name in get_pip_24_2.py get_pip_25_2.py; do
        [[ -s $cache/$name ]] || cat >"$cache/$name" <<'PY'
import subprocess
import sys

left_out = {"--no-setuptools", "--no-wheel"}
subprocess.check_call([sys.executable, "-m", "ensurepip"])
subprocess.check_call([sys.executable, "-m", "pip", "install", *(a for a in sys.argv[1:] if a not in left_out)])
PY
    done
}

# ------------------------------------------------------------------------------------------------------------ quick checks

part_shell() {
    local files
    mapfile -t files < <(
        sources '*.sh' '*.bash'
        sources rehearse .ci/run extensions/hosts/image/root | xargs -r grep -lE '^#!.*\b(ba)?sh'
    )
    for file in "${files[@]}"; do bash -n "$file" || return 1; done
    shellcheck --external-sources "${files[@]}"
}

part_ruff() { sources '*.py' | xargs -r ruff check --force-exclude --output-format=concise; }
part_format() { sources '*.py' | xargs -r ruff format --check --diff --force-exclude; }
part_yaml() { sources '*.yml' '*.yaml' .yamllint .ansible-lint | xargs -r yamllint --strict; }
part_changelog() { with_tree antsibull-changelog lint; }

# All of the collection by its full name, then what stands alone.
part_types() {
    local package=collections/ansible_collections/kvfleet/radiance paths=() status=0
    mapfile -t paths < <(sources 'plugins/*.py' | sed "s|^|$package/|")
    mypy "${paths[@]}" || status=1
    (cd extensions/rehearsal && mypy --config-file ../../pyproject.toml --cache-dir ../../.mypy_cache/rehearsal .) || status=1
    return $status
}

part_unit() { python -m pytest -q -n 3 --durations=12 tests/unit; }

# --------------------------------------------------------------------------------------------------- Ansible's own checks

part_galaxy() { with_tree build_and_install; }
build_and_install() {
    local folder status
    folder=$(mktemp -d)
    ansible-galaxy collection build --output-path "$folder" &&
        check_archive "$folder"/kvfleet-radiance-*.tar.gz &&
        install_and_name "$folder"
    status=$?
    rm -rf "$folder"
    return $status
}

# install_and_name FOLDER: every playbook answers to its full name where only the archive is installed
install_and_name() (
    export ANSIBLE_COLLECTIONS_PATH=$1/installed
    ansible-galaxy collection install --no-deps --offline -p "$1/installed" "$1"/kvfleet-radiance-*.tar.gz || return
    cd "$1" || return
    for book in "$TREE"/playbooks/*.yml; do
        [[ -f $book ]] || continue
        ansible-playbook -i localhost, --syntax-check "kvfleet.radiance.$(basename "$book" .yml)" || return
    done
)

# check_archive FILE: what a user installs holds no part of the workshop
check_archive() {
    local stray
    stray=$(tar -tzf "$1" | grep -E '^(\.|tests/|collections/)|\.pyc$' || true)
    if [[ -n $stray ]]; then
        printf 'in the archive, and should not be:\n%s\n' "$stray"
        return 1
    fi
}

part_docs() { with_tree antsibull-docs lint-collection-docs --plugin-docs --skip-rstcheck .; }
part_lint() { with_tree ansible-lint --offline; }

part_sanity() {
    seed
    with_tree ansible-test sanity --python "$(venv_version .venv)" --color no
}

# What runs on targets, on the oldest Python that they may have, but for what takes long; `unit` runs all of it.
part_units() {
    local files
    if [[ ! -x $PYTHONS/python3.9 ]]; then
        echo "there is no Python 3.9 here"
        return "$SKIPPED"
    fi
    seed
    mapfile -t files < <(
        sources 'tests/unit/plugins/modules/test_*.py' 'tests/unit/plugins/module_utils/*test_*.py' |
            grep -vE '/test_(switch_(units|kills|by_hand|survives|handover)[a-z_]*|probes_truth)\.py$'
    )
    with_tree ansible-test units --color no --num-workers 3 --target-python venv/3.9 "${files[@]}"
}

part_integration() {
    seed
    with_tree ansible-test integration --python "$(venv_version .venv)" --color no --continue-on-error
}

# venv_version FOLDER: the Python of an environment, as 3.11
venv_version() { "$1/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])'; }

# ------------------------------------------------------------------------------------------------------------ real resizes

part_molecule() {
    local folder status
    folder=$(mktemp -d)
    RADIANCE_MOLECULE_DIR=$folder ANSIBLE_COLLECTIONS_PATH=$PWD/collections molecule test --all --exclude hosts
    status=$?
    # A scenario that failed leaves its engine.
    for pid_file in "$folder"/*/engine.pid; do
        if [[ -f $pid_file ]] && grep -qzF "$folder" "/proc/$(<"$pid_file")/cmdline"; then kill "$(<"$pid_file")"; fi
    done
    rm -rf "$folder"
    return $status
}

# Real hosts, with real systemd and podman; `molecule` needs none of that.
part_hosts() {
    extensions/hosts/hosts.sh check || return "$SKIPPED"
    KVFLEET_HOSTS_STATE=$(mktemp -d) || return 1
    export KVFLEET_HOSTS_STATE
    # What a run leaves that failed, or was ended. Each part is a process of its own.
    trap 'extensions/hosts/hosts.sh down' EXIT
    trap 'exit 143' TERM
    ANSIBLE_COLLECTIONS_PATH=$PWD/collections molecule test --scenario-name hosts
}

# Docker comes from Debian's mirror each time, so no part of every run.
part_docker() {
    extensions/hosts/hosts.sh check || return "$SKIPPED"
    KVFLEET_HOSTS_STATE=$(mktemp -d) || return 1
    export KVFLEET_HOSTS_STATE
    trap 'extensions/hosts/hosts.sh down' EXIT
    trap 'exit 143' TERM
    ANSIBLE_COLLECTIONS_PATH=$PWD/collections extensions/hosts/docker.sh
}

# Some fifty faults, three runs of a resize each, on hosts of their own. Writes docs/faults.md.
part_faults() {
    extensions/hosts/hosts.sh check || return "$SKIPPED"
    KVFLEET_HOSTS_STATE=$(mktemp -d) || return 1
    export KVFLEET_HOSTS_STATE
    trap 'extensions/hosts/hosts.sh down' EXIT
    trap 'exit 143' TERM
    extensions/hosts/faults.sh
}

part_rehearsal() {
    python -m pytest -q -n 2 --dist loadscope tests/rehearsal
}

part_mutations() { python tests/mutations.py; }

# Ten times as many examples as `unit` tries of each property, and new ones.
part_properties() { EXAMPLES=1000 nice python -m pytest -q -n 2 -m hypothesis tests/unit; }

# Ten thousand boots read back, and as many damaged ones, where the part unit takes a sample.
part_worlds() { WORLDS=10000 DAMAGES=10000 nice python -m pytest -q tests/unit/worlds; }

# Five hundred random worlds and four requests of each, tried by the boots that they lead to, where the part unit takes a
# sample; it prints what it counted.
part_plans() {
    PLANNED_WORLDS=500 PLANNED_REQUESTS=4 nice python -m pytest -q -rP tests/unit/rehearsal/test_rehearsal_plans.py -k random
}

# Times, so no part of every run: they say as much of what else the machine does.
part_bench() {
    local name status=0
    for name in ledger plans rates round_trips fleet downtime; do
        printf -- '----- %s\n' "$name"
        python "tests/bench/$name.py" || status=1
    done
    return $status
}

# ------------------------------------------------------------------------------------------- under the newest ansible-core

# next_environment: makes it where a Python for it is there
next_environment() {
    environment "$NEXT" requirements/test-next.txt -- 3.13 3.12 3.14
    case $? in
        0) export PATH=$NEXT/bin:$PATH ;;
        "$SKIPPED")
            echo "there is no Python 3.12 or newer here"
            return "$SKIPPED"
            ;;
        *) return 1 ;;
    esac
}

# What runs on the controller; what runs on targets, and the rehearsal engine, know nothing of Ansible's releases.
part_next_unit() {
    next_environment || return
    python -m pytest -q -n 3 tests/unit --ignore=tests/unit/rehearsal --ignore=tests/unit/worlds \
        --ignore=tests/unit/plugins/module_utils --ignore-glob="*/modules/test_probes_*"
}

part_next_sanity() {
    next_environment || return
    seed
    with_tree ansible-test sanity --python "$(venv_version "$NEXT")" --color no
}

part_next_rehearsal() {
    next_environment || return
    REHEARSAL_TEST_VENV=$NEXT python -m pytest -q tests/rehearsal \
        -k "test_check_mode_shows_the_plan_and_touches_nothing or test_a_first_run_switches_and_proves_it"
}
