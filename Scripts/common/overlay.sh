# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# For the scripts that run something in a copy of a system. To be sourced.

# mount_copy LOWER ROOM - mounts at ROOM/root a copy of the system whose files are in LOWER, in the namespaces that the
# caller has entered. Files that are written there are in memory, and discarded with the namespaces.
mount_copy() {
  local lower=$1 room=$2 root=$2/root folder device
  mount --make-rprivate /
  mount -t tmpfs tmpfs "$room"
  mkdir "$room"/{upper,work,root}
  mount -t overlay -o "lowerdir=$lower,upperdir=$room/upper,workdir=$room/work" overlay "$root"
  mount -t proc proc "$root/proc"
  # Kernel settings are shared with this system, so nothing in the copy may change them.
  mount --bind "$root/proc/sys" "$root/proc/sys"
  mount -o remount,bind,ro "$root/proc/sys"
  mount -t sysfs -o ro sysfs "$root/sys"
  mount -t cgroup2 none "$root/sys/fs/cgroup"
  for folder in run tmp dev; do mount -t tmpfs -o mode=755 tmpfs "$root/$folder"; done
  chmod 1777 "$root/tmp"
  for device in null zero full random urandom tty; do
    : >"$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
  done
  mkdir "$root"/dev/{pts,shm}
  chmod 1777 "$root/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
  ln -s pts/ptmx "$root/dev/ptmx"
  ln -s /proc/self/fd "$root/dev/fd"
  ln -s fd/0 "$root/dev/stdin"
  ln -s fd/1 "$root/dev/stdout"
  ln -s fd/2 "$root/dev/stderr"
}

# enter_copy ROOM - makes the copy the root of the file system
enter_copy() {
  mkdir "$1/root/run/before"
  cd "$1/root" || return
  pivot_root . run/before
  umount --lazy /run/before
  rmdir /run/before
}
