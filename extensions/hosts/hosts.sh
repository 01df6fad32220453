#!/usr/bin/env bash
# Real test hosts: Debian with systemd, sshd, sudo and podman, each in a container of its own.
#
#   hosts.sh requirements        install what this machine needs, by apt
#   hosts.sh check               say what this machine lacks, and fail where it lacks anything
#   hosts.sh build               make the image where the cache lacks it
#   hosts.sh up                  bring the hosts up, and write an inventory for them
#   hosts.sh engine              build the engine's image again, from the checkout, on the running hosts
#   hosts.sh docker              put docker beside podman on the running host whose service is the system's, from the mirror
#   hosts.sh status              the hosts, their state and their ports
#   hosts.sh inventory           where the inventory is
#   hosts.sh ssh NAME [COMMAND…]
#   hosts.sh down [--purge]      remove the hosts; with --purge the cached image too
#
# KVFLEET_HOSTS_CACHE   where the image's tarball is kept (default ~/.cache/kvfleet-hosts)
# KVFLEET_HOSTS_STATE   keys and inventory while the hosts are up (default a folder of this checkout's in /tmp)
# KVFLEET_HOSTS_MIRROR  a Debian mirror (default debootstrap's own)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
checkout=$(printf '%s' "$here" | sha256sum | cut -c1-8)
cache=${KVFLEET_HOSTS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kvfleet-hosts}
state=${KVFLEET_HOSTS_STATE:-/tmp/kvfleet-hosts-$checkout}
label=kvfleet.hosts=$state

user=kvfleet
engine=localhost/radiance:1.0.13
# The same image under one more layer, by which the engine is another release.
newer=localhost/radiance:1.2.4
# The host, and in whose podman and systemd its service runs.
names=(dankserver-a dankserver-b)
declare -A scopes=([dankserver-a]=system [dankserver-b]=user)

needed=(conmon debootstrap iptables netavark openssh-client podman runc slirp4netns)

# Its warnings about networks that it does not use would drown the rest.
podman() { command podman --log-level error "$@"; }

fail() {
    printf 'hosts.sh: %s\n' "$1" >&2
    exit 1
}

container() { printf 'kvfleet-%s-%s' "$(printf '%s' "$state" | sha256sum | cut -c1-8)" "$1"; }

running() { [[ $(podman container inspect --format '{{.State.Running}}' "$(container "$1")" 2>/dev/null) == true ]]; }

# The name of the image says what it was made of.
image() {
    local recipe
    recipe=$(cd "$here/image" && find . -type f | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -c1-12)
    printf 'localhost/kvfleet-host:%s' "$recipe"
}

lacking() {
    local package
    for package in "${needed[@]}"; do
        [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || printf '%s\n' "$package"
    done
}

requirements() {
    local packages
    mapfile -t packages < <(lacking)
    ((${#packages[@]})) || return 0
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${packages[@]}" </dev/null
}

check_machine() {
    local packages
    ((EUID == 0)) || fail "the hosts need root: debootstrap, and containers that run systemd"
    mapfile -t packages < <(lacking)
    ((${#packages[@]} == 0)) || fail "this machine lacks ${packages[*]}; 'hosts.sh requirements' installs them"
    [[ -c /dev/net/tun ]] || fail "this machine has no /dev/net/tun, which slirp4netns needs"
}

build() {
    local name tarball
    name=$(image)
    tarball=$cache/${name##*:}.tar
    podman image exists "$name" && return
    mkdir -p "$cache"
    exec 9>"$cache/lock"
    flock 9
    [[ -s $tarball ]] || make_tarball "$tarball"
    podman import --quiet --change 'CMD ["/usr/local/sbin/host-init"]' --change 'STOPSIGNAL SIGRTMIN+3' "$tarball" "$name" >/dev/null
    exec 9>&-
    drop_images "$name"
}

# drop_images [KEPT]: removes the images that no host uses, but KEPT.
drop_images() {
    local name names
    mapfile -t names < <(podman images --format '{{.Repository}}:{{.Tag}}' --filter reference='localhost/kvfleet-host')
    for name in "${names[@]}"; do
        [[ $name == "${1:-}" ]] || podman rmi "$name" >/dev/null 2>&1 || printf 'hosts.sh: %s is in use\n' "$name" >&2
    done
}

make_tarball() {
    local work packages log
    work=$(mktemp -d "$cache/build.XXXXXX")
    # shellcheck disable=SC2064  # the folder of now
    trap "rm -rf '$work'" EXIT
    packages=$(paste -sd, "$here/image/packages")
    log=$cache/build.log
    if ! debootstrap --variant=minbase --include="$packages" bookworm "$work/root" ${KVFLEET_HOSTS_MIRROR:+"$KVFLEET_HOSTS_MIRROR"} >"$log" 2>&1; then
        tail -n 5 "$log" >&2
        fail "debootstrap failed; $log has all of it"
    fi
    "$here/image/configure.sh" "$work/root"
    tar -C "$work/root" --numeric-owner -cf "$work/root.tar" .
    # One recipe is kept: this one.
    rm -f "$cache"/*.tar
    mv "$work/root.tar" "$1"
    rm -rf "$work"
    trap - EXIT
}

up() {
    local name
    check_machine
    build
    (umask 077 && mkdir -p "$state/control")
    [[ -O $state ]] || fail "$state belongs to somebody else"
    [[ -s $state/key ]] || ssh-keygen -q -t ed25519 -N '' -C kvfleet-hosts -f "$state/key"
    for name in "${names[@]}"; do running "$name" || start "$name"; done
    : >"$state/known_hosts"
    for name in "${names[@]}"; do await "$name"; done
    write_inventory
    engine
    printf '%s\n' "$state/inventory.yml"
}

# A limit that podman does not have to raise: that takes CAP_SYS_RESOURCE.
at_most() {
    if [[ $2 == unlimited ]] || (($2 > $1)); then printf '%s:%s' "$1" "$1"; else printf '%s:%s' "$2" "$2"; fi
}

# Capabilities instead of --privileged: the host gets none of the machine's devices. slirp4netns publishes the port without a
# bridge, a firewall rule or a sysctl on the machine.
start() {
    podman rm --force --time 0 --ignore "$(container "$1")" >/dev/null
    podman run --detach --name "$(container "$1")" --label "$label" --hostname "$1" \
        --runtime runc --systemd always --cgroupns private \
        --cap-add all --security-opt seccomp=unconfined --security-opt unmask=ALL \
        --ulimit "nofile=$(at_most 16384 "$(ulimit -Hn)")" --ulimit "nproc=$(at_most 16384 "$(ulimit -Hu)")" \
        --network slirp4netns:port_handler=rootlesskit --publish 127.0.0.1::22 \
        --volume "$state/key.pub:/etc/ssh/authorized_keys:ro" \
        "$(image)" >/dev/null
}

port() { podman port "$(container "$1")" 22/tcp | cut -d: -f2; }

# until_true SECONDS COMMAND…
until_true() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < end)) || return 1
        sleep 0.2
    done
}

await() {
    local name=$1 box
    box=$(container "$name")
    until_true 60 podman exec "$box" systemctl is-active ssh.service || {
        podman logs --tail 5 "$box" >&2
        fail "$name did not start sshd within 60 s"
    }
    printf '[127.0.0.1]:%s %s\n' "$(port "$name")" "$(podman exec "$box" cut -d' ' -f1,2 /etc/ssh/ssh_host_ed25519_key.pub)" >>"$state/known_hosts"
    if [[ ${scopes[$name]} == user ]]; then
        # podman 4.3 takes each v1 hierarchy of the machine for a group that the user has to own, and moves itself out of
        # the user's unit where he does not: the unit's journal would lose the engine's log.
        podman exec "$box" chown "$user" /sys/fs/cgroup
        podman exec "$box" loginctl enable-linger "$user"
        until_true 30 podman exec "$box" systemctl is-active user@1000.service || fail "$name did not start the systemd of $user within 30 s"
    fi
    until_true 30 connect "$name" true || fail "$name does not answer over ssh within 30 s"
}

ssh_options() {
    printf '%s\n' -o "UserKnownHostsFile=$state/known_hosts" -o StrictHostKeyChecking=yes -o IdentitiesOnly=yes -o BatchMode=yes
}

connect() {
    local name=$1 options
    shift
    mapfile -t options < <(ssh_options)
    ssh "${options[@]}" -i "$state/key" -p "$(port "$name")" "$user@127.0.0.1" "$@"
}

write_inventory() {
    local name
    {
        printf -- '---\n# Written by extensions/hosts/hosts.sh up; gone with the hosts.\n'
        printf 'all:\n  vars:\n'
        printf '    ansible_host: 127.0.0.1\n    ansible_user: %s\n    ansible_become_method: ansible.builtin.sudo\n' "$user"
        printf '    ansible_python_interpreter: /usr/bin/python3\n    ansible_ssh_private_key_file: %s/key\n' "$state"
        printf '    ansible_ssh_common_args: "%s"\n' "$(ssh_options | paste -sd' ')"
        printf '    ansible_control_path_dir: %s/control\n' "$state"
        printf '  children:\n    inference:\n      hosts:\n'
        for name in "${names[@]}"; do
            printf '        %s:\n          ansible_port: %s\n          hosts_scope: %s\n' "$name" "$(port "$name")" "${scopes[$name]}"
        done
    } >"$state/inventory.yml"
}

engine() {
    local name work=()
    for name in "${names[@]}"; do
        engine_on "$name" &
        work+=($!)
    done
    for name in "${!work[@]}"; do wait "${work[$name]}" || fail "no engine image on ${names[$name]}"; done
}

engine_on() {
    local box run=()
    box=$(container "$1")
    podman exec "$box" rm -rf /usr/local/share/rehearsal
    tar -C "$here/.." --exclude=__pycache__ --owner=0 --group=0 --mode=go=rX -c rehearsal | podman exec -i "$box" tar -C /usr/local/share -x
    if [[ ${scopes[$1]} == user ]]; then run=(runuser -u "$user" -- env -C "/home/$user" XDG_RUNTIME_DIR=/run/user/1000 DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus); fi
    podman exec "$box" "${run[@]}" engine-image "$engine" >/dev/null
    podman exec "$box" "${run[@]}" sh -euc "$layer" layer "$engine" "$newer" >/dev/null
}

# layer BASE IMAGE, run inside a host: the tag of IMAGE is the release.
# shellcheck disable=SC2016  # the host's own sh expands it
layer='
own=$(mktemp)
printf "{\"release\": \"%s\"}\n" "${2##*:}" >"$own"
chmod 644 "$own"
container=$(podman create "$1")
podman cp "$own" "$container:/usr/share/radiance/own.world.json"
podman commit --quiet --change "LABEL org.opencontainers.image.version=${2##*:}" "$container" "$2"
podman rm "$container"
rm -f "$own"
'

# Not in the image, where it would cost every run that needs none some 40 s.
docker() {
    local name
    for name in "${names[@]}"; do
        [[ ${scopes[$name]} == user ]] || podman exec -i "$(container "$name")" bash -s "$engine" <"$here/docker/install.sh"
    done
}

status() {
    local name
    for name in "${names[@]}"; do
        if running "$name"; then
            printf '%s  %s  ssh port %s, service of the %s\n' "$name" "$(podman exec "$(container "$name")" systemctl is-system-running || true)" "$(port "$name")" "${scopes[$name]}"
        else
            printf '%s  absent\n' "$name"
        fi
    done
}

down() {
    local boxes socket
    for socket in "$state"/control/*; do
        [[ -S $socket ]] && ssh -o "ControlPath=$socket" -O exit 127.0.0.1 2>/dev/null
    done
    mapfile -t boxes < <(podman ps --all --quiet --filter "label=$label")
    ((${#boxes[@]} == 0)) || podman rm --force --time 0 --volumes "${boxes[@]}" >/dev/null
    rm -rf "$state"
    if [[ ${1:-} == --purge ]]; then
        drop_images
        rm -rf "$cache"
    fi
}

command=${1:-}
(($#)) && shift
case $command in
    requirements | up | engine | docker | status) "$command" ;;
    check) check_machine ;;
    build) check_machine && build ;;
    inventory) printf '%s\n' "$state/inventory.yml" ;;
    down) down "$@" ;;
    ssh) (($#)) || fail "ssh wants a host: ${names[*]}" && connect "$@" ;;
    *)
        sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2
        exit 2
        ;;
esac
