#!/usr/bin/env bash
# Injects faults into real resizes: brings the hosts up with the service of the scenario `hosts`, runs faults/run.py, which
# writes docs/faults.md, and takes the hosts down. Its words are those of faults/run.py: `--list` names the faults, and
# words choose among them. With KVFLEET_HOSTS_STATE set, hosts that are up there are used, and stay.
# PYTHON names another Python than the checkout's .venv, with ansible-playbook beside it.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
checkout=$(cd "$here/../.." && pwd -P)
python=${PYTHON:-$checkout/.venv/bin/python}
export ANSIBLE_COLLECTIONS_PATH=${ANSIBLE_COLLECTIONS_PATH:-$checkout/collections} ANSIBLE_PIPELINING=1
export MOLECULE_PROJECT_DIRECTORY=$checkout
PATH=$(dirname "$python"):$PATH

if [[ " $* " == *" --list "* ]]; then exec "$python" "$here/faults/run.py" "$@"; fi

if [[ -z ${KVFLEET_HOSTS_STATE:-} || ! -s $KVFLEET_HOSTS_STATE/inventory.yml ]]; then
    [[ -n ${KVFLEET_HOSTS_STATE:-} ]] || KVFLEET_HOSTS_STATE=$(mktemp -d)
    export KVFLEET_HOSTS_STATE
    trap '"$here/hosts.sh" down' EXIT
    "$here/hosts.sh" up
fi
# The unit, the files and the fleet directory; it starts what does not run, and leaves what does.
if ! "$here/hosts.sh" ssh dankserver-a test -e /srv/radiance/since; then
    ansible-playbook --inventory "$KVFLEET_HOSTS_STATE/inventory.yml" \
        --inventory "$checkout/extensions/molecule/hosts/inventory/hosts.yml" "$checkout/extensions/molecule/hosts/prepare.yml"
fi
"$python" "$here/faults/run.py" "$@"
