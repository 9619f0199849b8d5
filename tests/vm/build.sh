#!/usr/bin/env bash
# Makes the virtual machine's kernel, initramfs and root file system in build/vm/ (or $KERN_VM_DIR), from this
# distribution's own packages. Does nothing when they are there and this script has not changed since. Root only: a root
# file system has files of many owners. What is tested is not in the image, so it outlives every build of the program.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
top=$(cd ../.. && pwd)
dir=${KERN_VM_DIR:-$top/build/vm}
# shellcheck source=/dev/null
codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")

# dbus-user-session and libpam-systemd: a user manager, and sessions as sshd and login make them.
packages=(systemd systemd-sysv dbus dbus-user-session libpam-systemd libsystemd0 login passwd util-linux mount kmod
	procps python3 python3-pytest python3-jsonschema libjson-c5 libuv1 libseccomp2 libcap2 libnettle8 libarchive13 libpng16-16
	libpcre2-8-0 apparmor)
# In this order; what is not a module of this kernel is part of it.
modules=(virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk overlay quota_tree quota_v2)

stamp() { { echo "$codename"; cat build.sh; } | sha256sum; }

# shellcheck disable=SC2016 # what is quoted is for the shell in there
make_kernel() { # DIRECTORY
	local package version found
	package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9][^ ]*\).*/\1/p')
	if [ -z "$package" ]; then
		echo "no package linux-image-cloud-amd64 here: run apt-get update (Debian on amd64 only)" >&2
		return 1
	fi
	(cd "$1" && apt-get download -q "$package" busybox-static)
	dpkg-deb -x "$1"/linux-image-*.deb "$1/kernel"
	dpkg-deb -x "$1"/busybox-static*.deb "$1/busybox"
	version=$(basename "$1"/kernel/lib/modules/*)
	mkdir -p "$1"/ramfs/{bin,dev,proc,root,modules}
	cp "$1/busybox/bin/busybox" "$1/ramfs/bin/"
	for name in "${modules[@]}"; do
		found=$(find "$1/kernel/lib/modules/$version" "(" -name "$name.ko" -o -name "$name.ko.xz" ")" -print -quit)
		[ -n "$found" ] || { grep -q "/$name.ko" "$1/kernel/lib/modules/$version/modules.builtin"; continue; }
		case $found in
		*.xz) xz -dc "$found" >"$1/ramfs/modules/$name.ko" ;;
		*) cp "$found" "$1/ramfs/modules/" ;;
		esac
	done
	{
		echo '#!/bin/busybox sh'
		echo 'b=/bin/busybox; $b mount -t proc proc /proc; $b mount -t devtmpfs dev /dev'
		for name in "${modules[@]}"; do
			[ ! -e "$1/ramfs/modules/$name.ko" ] || echo "\$b insmod /modules/$name.ko"
		done
		# When it cannot, this ends, and so does the machine.
		echo '$b mount -t ext4 /dev/vda /root && exec $b switch_root /root /sbin/init'
	} >"$1/ramfs/init"
	chmod 755 "$1/ramfs/init"
	(cd "$1/ramfs" && find . | cpio -o -H newc --quiet | gzip -1) >"$1/initrd.gz"
	cp "$1/kernel/boot/vmlinuz-$version" "$1/vmlinuz"
}

# The service unpacks the second disk, a tar archive, and runs what is in it.
configure() { # ROOT
	chroot "$1" useradd --create-home --shell /bin/bash kerntest # has a user manager, as every ssh login has
	chroot "$1" useradd --create-home --shell /bin/bash kernalone # never has one
	mkdir -p "$1/var/lib/systemd/linger" "$1/etc/systemd/system/multi-user.target.wants"
	touch "$1/var/lib/systemd/linger/kerntest"
	cat >"$1/etc/systemd/system/kern-vm.service" <<-'END'
		[Unit]
		After=systemd-logind.service dbus.service systemd-user-sessions.service
		Wants=systemd-logind.service dbus.service
		[Service]
		Type=oneshot
		Environment=LANG=C.UTF-8
		ExecStartPre=/bin/mkdir -p /opt/kern
		ExecStartPre=/bin/tar -xf /dev/vdb -C /opt/kern
		ExecStart=/usr/bin/python3 -B /opt/kern/tests/vm/inside/main.py
		ExecStopPost=/bin/systemctl poweroff --force --force
		StandardOutput=tty
		StandardError=tty
		TTYPath=/dev/ttyS0
		TimeoutStartSec=infinity
	END
	ln -s ../kern-vm.service "$1/etc/systemd/system/multi-user.target.wants/"
	for unit in serial-getty@ttyS0.service getty@tty1.service systemd-timesyncd.service fstrim.timer e2scrub_all.timer \
		e2scrub_reap.service apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer systemd-journal-flush.service; do
		ln -sf /dev/null "$1/etc/systemd/system/$unit"
	done
	echo kern-vm >"$1/etc/hostname"
	: >"$1/etc/fstab"
}

# shellcheck disable=SC2016 # apt's own variables
make_root() { # DIRECTORY
	local sources list
	sources=$(apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' \
		'Origin: Debian' | sort -u)
	[ -n "$sources" ] || { echo "apt knows no package lists of Debian: run apt-get update" >&2; return 1; }
	list=$(IFS=,; echo "${packages[*]}")
	mmdebstrap --quiet --variant=minbase --include="$list" --dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/man/*' \
		"$codename" "$1/rootfs" - <<<"$sources"
	configure "$1/rootfs"
	truncate -s 1G "$1/root.img"
	mke2fs -q -F -t ext4 -O ^has_journal -d "$1/rootfs" "$1/root.img"
}

main() {
	local new
	mkdir -p "$dir"
	exec 9>"$dir/lock"
	flock 9
	if [ "$(cat "$dir/stamp" 2>/dev/null)" = "$(stamp)" ]; then
		echo "$dir: up to date"
		return
	fi
	rm -f "$dir/stamp"
	new=$(mktemp -d "$dir/new.XXXXXX")
	# shellcheck disable=SC2064 # the directory of now
	trap "rm -rf '$new'" EXIT
	chmod 755 "$new"
	make_kernel "$new"
	make_root "$new"
	mv "$new"/{vmlinuz,initrd.gz,root.img} "$dir/"
	stamp >"$dir/stamp"
	echo "$dir: made"
}

main
