#!/usr/bin/env bash
# configure.sh ROOT: turns a fresh Debian tree into a test host's.
set -euo pipefail
root=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)

chroot "$root" useradd --create-home --shell /usr/bin/zsh --user-group --uid 1000 kvfleet
cp -r --no-preserve=mode,ownership "$here/root/." "$root/"
chmod 755 "$root/usr/local/sbin/host-init" "$root/usr/local/bin/engine-image"
chmod 440 "$root/etc/sudoers.d/kvfleet"
chroot "$root" chown -R kvfleet:kvfleet /home/kvfleet

# A host's identity is made at its boot.
rm -f "$root"/etc/ssh/ssh_host_*
: >"$root/etc/machine-id"

# A container has the machine's kernel: nothing here may set its sysctls, load modules or mount its file systems. The
# other units have no work on a test host, and would fail or wake up.
masked=(
    systemd-sysctl.service systemd-modules-load.service systemd-binfmt.service systemd-remount-fs.service
    systemd-udevd.service systemd-udevd-control.socket systemd-udevd-kernel.socket systemd-udev-trigger.service
    sys-kernel-debug.mount sys-kernel-tracing.mount sys-kernel-config.mount sys-fs-fuse-connections.mount
    dev-hugepages.mount proc-sys-fs-binfmt_misc.mount proc-sys-fs-binfmt_misc.automount
    podman.service podman.socket podman-restart.service podman-auto-update.service podman-auto-update.timer
    apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer fstrim.timer e2scrub_all.timer e2scrub_reap.service
    getty.target console-getty.service
)
for unit in "${masked[@]}"; do ln -sf /dev/null "$root/etc/systemd/system/$unit"; done
for unit in podman.service podman.socket podman-restart.service podman-auto-update.service podman-auto-update.timer; do
    ln -sf /dev/null "$root/etc/systemd/user/$unit"
done

rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/var/log/*.log
