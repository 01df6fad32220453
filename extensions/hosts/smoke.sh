#!/usr/bin/env bash
# Brings the hosts up, tries them with smoke.yml, takes them down, and looks for what is left. Says how long each took.
# ANSIBLE_PLAYBOOK names another ansible-playbook than the checkout's .venv or the one on PATH.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
playbook=${ANSIBLE_PLAYBOOK:-$here/../../.venv/bin/ansible-playbook}
[[ -x $playbook ]] || playbook=ansible-playbook
export ANSIBLE_COLLECTIONS_PATH=${ANSIBLE_COLLECTIONS_PATH:-$here/../../collections}

left() {
    podman --log-level error ps --all --noheading
    podman --log-level error network ls --noheading | grep -v ' podman ' || true
    podman --log-level error volume ls --noheading
    ip -brief link | cut -d' ' -f1
    sysctl -a 2>/dev/null | grep -E '^(fs\.protected_|kernel\.pid_max|net\.ipv4\.ip_forward|net\.ipv4\.conf\.all\.)' || true
    find /sys/fs/cgroup -maxdepth 2 -type d ! -path '*/libpod_parent*'
    iptables-save | grep '^-A' || true
    pgrep -fa 'slirp4netns|conmon|rootlessport' | grep -v defunct || true
    find /tmp -maxdepth 1 -name 'kvfleet-hosts-*'
}

# timed WHAT COMMAND…
timed() {
    local what=$1 start=$SECONDS
    shift
    "$@"
    printf '%s: %s s\n' "$what" "$((SECONDS - start))"
}

down() { "$here/hosts.sh" down; }

down
before=$(left)
trap down EXIT
timed 'image' "$here/hosts.sh" build
timed 'up' "$here/hosts.sh" up
ANSIBLE_PIPELINING=1 timed 'smoke.yml' "$playbook" -i "$("$here/hosts.sh" inventory)" "$here/smoke.yml"
trap - EXIT
timed 'down' down
diff <(printf '%s\n' "$before") <(left) || {
    echo 'smoke.sh: the lines above are traces of the hosts' >&2
    exit 1
}
echo 'no trace is left'
