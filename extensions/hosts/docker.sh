#!/usr/bin/env bash
# Tries a real docker: brings the hosts up, puts docker on one of them, reads containers of each log driver, resizes a service whose container
# is docker's and brings it back, and takes the hosts down. Says how long each took.
# ANSIBLE_PLAYBOOK names another ansible-playbook than the checkout's .venv or the one on PATH.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
checkout=$(cd "$here/../.." && pwd -P)
playbook=${ANSIBLE_PLAYBOOK:-$checkout/.venv/bin/ansible-playbook}
[[ -x $playbook ]] || playbook=ansible-playbook
export ANSIBLE_COLLECTIONS_PATH=${ANSIBLE_COLLECTIONS_PATH:-$checkout/collections} ANSIBLE_PIPELINING=1 MOLECULE_PROJECT_DIRECTORY=$checkout

# play WORD…: ansible-playbook on the one host, with the service of the scenario `hosts` in docker
play() {
    "$playbook" --inventory "$inventory" --inventory "$checkout/extensions/molecule/hosts/inventory/hosts.yml" \
        --inventory "$here/docker/inventory.yml" --limit dankserver-a "$@"
}

look() { play "$here/docker/look.yml" --extra-vars "weights=$1 kv=$2 as=${3:-}"; }

# timed WHAT COMMAND…: ends as the command does, also behind `if`, where the shell does not end at a failure
timed() {
    local what=$1 start=$SECONDS status=0
    shift
    "$@" || status=$?
    printf '%s: %s s\n' "$what" "$((SECONDS - start))"
    return "$status"
}

trap '"$here/hosts.sh" down' EXIT
timed 'up' "$here/hosts.sh" up
inventory=$("$here/hosts.sh" inventory)
KVFLEET_HOSTS_STATE=$(dirname "$inventory")
export KVFLEET_HOSTS_STATE
timed 'docker' "$here/hosts.sh" docker
# By the hosts' own inventory alone, in which who becomes root is left to the play.
timed 'log drivers' "$playbook" --inventory "$inventory" "$here/docker/drivers.yml"

# The unit and the files of the scenario, on the pair of its example.
timed 'service' play "$checkout/extensions/molecule/hosts/prepare.yml"
look 24000 5120
timed 'env' play "$here/docker/env.yml"
timed 'resize' play kvfleet.radiance.resize
look 25844 5119
timed 'nothing to change' play kvfleet.radiance.resize
look 25844 5119 before
# The header has grown.
timed 'env of the resize' play "$here/docker/env.yml"
timed 'rollback' play kvfleet.radiance.rollback
look 24000 5120

# A boot that the engine refuses takes its container and its log along: the journal of the unit has the reason.
models=/srv/radiance/models
"$here/hosts.sh" ssh dankserver-a "echo '[\"short_by\"]' | sudo tee $models/flashnext.faults.json" >/dev/null
if refused=$(timed 'refused boot' play kvfleet.radiance.resize --extra-vars 'weights_mib=25000 kv_mib=5120' 2>&1); then
    printf '%s\ndocker.sh: a boot that the engine refuses was taken for good\n' "$refused" >&2
    exit 1
fi
printf '%s\n' "$refused"
grep -q 'SHORT BY' <<<"$refused" || exit 1
look 24000 5120
# With what the engine said of the boot that it refused.
timed 'env of a refusal' play "$here/docker/env.yml"

# The client of a container that was killed leaves it, under a unit that has failed.
"$here/hosts.sh" ssh dankserver-a sudo systemctl kill --signal=KILL flashnext.service
timed 'resize without a client' play kvfleet.radiance.resize --extra-vars 'weights_mib=25000 kv_mib=5120'
look 25000 5120
