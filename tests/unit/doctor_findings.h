/* doctor_findings.h: hosts that are not fine, one a line: what is changed of the good host of doctor_rig.h, where the
 * probe fails, and what the doctor has to say. */
#pragma once

#include "doctor_rig.h"

#define NO_FILE "\1"
#define TOP "22 1 254:0 / / rw - ext4 /dev/vda rw\n"
#define PROC "23 22 0:21 / /proc rw - proc proc rw\n"

struct finding {
	const char *name;
	uid_t uid;
	struct {
		const char *path, *text; /* NO_FILE: taken away */
	} files[3];
	const char *step; /* where the probe failed; NULL: the box ran */
	int sys_errno;
	const char *id; /* with a failed probe it has to be the first */
	enum ks_check_status status;
	const char *found, *fix; /* found exactly, fix in part; NULL fix: none is asked for */
	bool behind;		 /* it is not the cause, and stands in its place */
};

#define OSRELEASE "/proc/sys/kernel/osrelease"
#define USERNS "/proc/sys/kernel/unprivileged_userns_clone"
#define APPARMOR "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
#define MOUNTINFO "/proc/self/mountinfo"
#define SELF_STATUS "/proc/self/status"

/* clang-format off */
static const struct finding findings[] = {
	/* the kernel */
	{ .name = "new mount API", 1000, { { OSRELEASE, "5.1.21\n" } }, "bind /usr", ENOSYS, "kernel", KS_CHECK_FAIL,
	  "5.1.21 lacks open_tree and move_mount (5.2), clone3 (5.3), openat2 (5.6), close_range (5.9), mount_setattr "
	  "(5.12), " "seccomp WAIT_KILLABLE_RECV (5.19)", "boot a kernel of 5.19 or later" },
	{ .name = "mount_setattr", 1000, { { OSRELEASE, "5.11.0\n" } }, "read-only root", ENOSYS, "kernel",
	  KS_CHECK_FAIL, "5.11.0 lacks mount_setattr (5.12), seccomp WAIT_KILLABLE_RECV (5.19)",
	  "boot a kernel of 5.19 or later" },
	{ .name = "WAIT_KILLABLE_RECV", 1000, { { OSRELEASE, "5.18.19-200.fc36\n" } }, "escape filter", EINVAL,
	  "kernel", KS_CHECK_FAIL, "5.18.19-200.fc36 lacks seccomp WAIT_KILLABLE_RECV (5.19)",
	  "sudo apt install linux-image-amd64" },
	{ .name = "old but patched", 1000, { { OSRELEASE, "5.14.0-503.el9\n" } }, NULL, 0, "kernel", KS_CHECK_OK,
	  "5.14.0-503.el9 lacks seccomp WAIT_KILLABLE_RECV (5.19); boxes start all the same", NULL },
	{ .name = "just new enough", 1000, { { OSRELEASE, "5.19.0\n" } }, NULL, 0, "kernel", KS_CHECK_OK, "5.19.0",
	  NULL },
	{ .name = "no user_notif", 1000, { { "/proc/sys/kernel/seccomp/actions_avail", "kill errno allow\n" } },
	  "escape filter", EINVAL, "seccomp_notify", KS_CHECK_FAIL, "actions: kill errno allow",
	  "CONFIG_SECCOMP_FILTER=y" },
	{ .name = "no seccomp", 1000, { { "/proc/sys/kernel/seccomp/actions_avail", NO_FILE } }, "escape filter",
	  EINVAL, "seccomp_notify", KS_CHECK_FAIL,
	  "/proc/sys/kernel/seccomp/actions_avail cannot be read: no seccomp filters in this kernel",
	  "CONFIG_SECCOMP=y" },
	{ .name = "a listener above", 1000, { { NULL, NULL } }, "escape filter", EBUSY, "seccomp_listener",
	  KS_CHECK_FAIL, "taken by a sandbox around this one", "security.syscalls.intercept.mount" },
	/* the machine */
	{ .name = "WSL1", 1000, { { OSRELEASE, "4.4.0-19041-Microsoft\n" } }, "launcher namespaces", EINVAL, "wsl",
	  KS_CHECK_FAIL, "WSL1 (4.4.0-19041-Microsoft)", "wsl --set-version DISTRIBUTION 2" },
	{ .name = "WSL2", 1000, { { OSRELEASE, "6.6.87.2-microsoft-standard-WSL2\n" } }, NULL, 0, "wsl", KS_CHECK_OK,
	  "WSL2", NULL },
	{ .name = "WSL2 on a drive of Windows", 1000, { { OSRELEASE, "6.6.87.2-microsoft-standard-WSL2\n" }, {
	  MOUNTINFO, TOP PROC "30 22 0:40 / /home/me rw - 9p C:\\134 rw\n" } }, NULL, 0, "wsl", KS_CHECK_WARN,
	  "WSL2, and /home/me/project lies on a drive of Windows (9p)", "cp -r the project to ~/" },
	{ .name = "gVisor", 1000, { { "/proc/version",
	  "Linux version 4.19.0-gvisor #1 SMP Sun Jan 10 15:06:54 PST 2016\n" } }, "escape filter", EINVAL, "gvisor",
	  KS_CHECK_FAIL, "Linux version 4.19.0-gvisor #1 SMP Sun Jan 10 15:06:54 PST 2016", "--runtime=runc" },
	{ .name = "gVisor of old", 1000, { { "/proc/version",
	  "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n" } }, "box namespaces", EPERM, "gvisor",
	  KS_CHECK_FAIL, "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016", "RuntimeClass" },
	{ .name = "docker", 1000, { { "/.dockerenv", "" } }, NULL, 0, "container", KS_CHECK_OK, "docker", NULL },
	{ .name = "podman", 1000, { { "/run/.containerenv", "" } }, NULL, 0, "container", KS_CHECK_OK, "podman", NULL
	  },
	{ .name = "kubernetes", 1000, { { "/var/run/secrets/kubernetes.io/x", "" }, { "/.dockerenv", "" } }, NULL, 0,
	  "container", KS_CHECK_OK, "kubernetes", NULL },
	{ .name = "lxc by /proc/1/cgroup", 1000, { { "/proc/1/cgroup", "0::/lxc.payload.c1/init.scope\n" } }, NULL, 0,
	  "container", KS_CHECK_OK, "lxc", NULL },
	{ .name = "systemd-nspawn", 1000, { { "/run/systemd/container", "systemd-nspawn\n" } }, NULL, 0, "container",
	  KS_CHECK_OK, "systemd-nspawn", NULL },
	/* namespaces */
	{ .name = "no user namespaces", 1000, { { "/proc/self/ns/user", NO_FILE }, { "/proc/self/ns/net", NO_FILE } },
	  "launcher namespaces", EINVAL, "namespaces", KS_CHECK_FAIL, "this kernel lacks: user net",
	  "CONFIG_USER_NS=y CONFIG_NET_NS=y" },
	{ .name = "Debian's switch", 1000, { { USERNS, "0\n" } }, "launcher namespaces", EPERM, "userns_clone",
	  KS_CHECK_FAIL, "kernel.unprivileged_userns_clone = 0", "echo kernel.unprivileged_userns_clone=1 | sudo tee"
	  },
	{ .name = "Debian's switch and root", 0, { { USERNS, "0\n" } }, NULL, 0, "userns_clone", KS_CHECK_OK,
	  "kernel.unprivileged_userns_clone = 0, which does not bind root", NULL },
	{ .name = "Ubuntu, the clone", 1000, { { APPARMOR, "1\n" } }, "launcher namespaces", EPERM, "apparmor_userns",
	  KS_CHECK_FAIL, "kernel.apparmor_restrict_unprivileged_userns = 1",
	  "profile kern-sidecar /opt/kern/kern-sidecar flags=(unconfined) {\\n  userns,\\n}" },
	{ .name = "Ubuntu, the map", 1000, { { APPARMOR, "1\n" } }, "id map", EACCES, "apparmor_userns",
	  KS_CHECK_FAIL, "kernel.apparmor_restrict_unprivileged_userns = 1",
	  "sudo apparmor_parser -r /etc/apparmor.d/kern-sidecar" },
	{ .name = "Ubuntu, lo", 1000, { { APPARMOR, "1\n" } }, "network", EPERM, "apparmor_userns", KS_CHECK_FAIL,
	  "kernel.apparmor_restrict_unprivileged_userns = 1",
	  "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0" },
	{ .name = "Ubuntu with a profile", 1000, { { APPARMOR, "1\n" } }, NULL, 0, "apparmor_userns", KS_CHECK_OK,
	  "kernel.apparmor_restrict_unprivileged_userns = 1; boxes start all the same", NULL },
	{ .name = "Ubuntu and root", 0, { { APPARMOR, "1\n" } }, NULL, 0, "apparmor_userns", KS_CHECK_OK,
	  "kernel.apparmor_restrict_unprivileged_userns = 1, which does not bind root", NULL },
	{ .name = "no user namespaces allowed", 1000, { { "/proc/sys/user/max_user_namespaces", "0\n" } },
	  "launcher namespaces", ENOSPC, "max_user_namespaces", KS_CHECK_FAIL, "user.max_user_namespaces = 0",
	  "echo user.max_user_namespaces=15000 | sudo tee -a" },
	{ .name = "the same, an old kernel's errno", 0, { { "/proc/sys/user/max_user_namespaces", "0\n" } },
	  "user namespace", EUSERS, "max_user_namespaces", KS_CHECK_FAIL, "user.max_user_namespaces = 0",
	  "sudo sysctl --system" },
	{ .name = "no pid namespaces allowed", 1000, { { "/proc/sys/user/max_pid_namespaces", "0\n" } },
	  "launcher namespaces", ENOSPC, "max_pid_namespaces", KS_CHECK_FAIL, "user.max_pid_namespaces = 0",
	  "user.max_pid_namespaces=15000" },
	{ .name = "no mount namespaces allowed", 1000, { { "/proc/sys/user/max_mnt_namespaces", "0\n" } },
	  "template namespaces", ENOSPC, "max_mnt_namespaces", KS_CHECK_FAIL, "user.max_mnt_namespaces = 0",
	  "user.max_mnt_namespaces=15000" },
	{ .name = "no network namespaces allowed", 1000, { { "/proc/sys/user/max_net_namespaces", "0\n" } },
	  "template namespaces", ENOSPC, "max_net_namespaces", KS_CHECK_FAIL, "user.max_net_namespaces = 0",
	  "user.max_net_namespaces=15000" },
	{ .name = "no cgroup namespaces allowed", 1000, { { "/proc/sys/user/max_cgroup_namespaces", "0\n" } },
	  "cgroup", ENOSPC, "max_cgroup_namespaces", KS_CHECK_FAIL, "user.max_cgroup_namespaces = 0",
	  "user.max_cgroup_namespaces=15000" },
	{ .name = "too few", 1000, { { "/proc/sys/user/max_ipc_namespaces", "255\n" } }, NULL, 0,
	  "max_ipc_namespaces", KS_CHECK_WARN, "user.max_ipc_namespaces = 255", "user.max_ipc_namespaces=15000" },
	{ .name = "just enough", 1000, { { "/proc/sys/user/max_ipc_namespaces", "256\n" } }, NULL, 0,
	  "max_ipc_namespaces", KS_CHECK_OK, "user.max_ipc_namespaces = 256", NULL },
	{ .name = "used up in an outer namespace", 1000, { { NULL, NULL } }, "launcher namespaces", ENOSPC,
	  "max_user_namespaces", KS_CHECK_FAIL,
	  "user.max_user_namespaces = 63000; but step 'launcher namespaces' failed", "user.max_user_namespaces=15000"
	  },
	{ .name = "a container's root", 0, { { SELF_STATUS, "CapEff:\t00000000a80425fb\nSeccomp:\t2\n" }, {
	  "/.dockerenv", "" } }, "launcher namespaces", EPERM, "root_capabilities", KS_CHECK_FAIL,
	  "root without: SYS_ADMIN", "docker run --cap-add SYS_ADMIN" },
	{ .name = "root without anything", 0, { { SELF_STATUS, "CapEff:\t0000000000000000\n" } },
	  "launcher namespaces", EPERM, "root_capabilities", KS_CHECK_FAIL,
	  "root without: SETGID SETUID CHOWN KILL SYS_ADMIN", "run it as an ordinary user" },
	{ .name = "a rootless container's root", 0, { { "/proc/self/uid_map", "0 1000 1\n1 100000 65536\n" } },
	  "id map", EPERM, "id_range", KS_CHECK_FAIL, "ids from 2000000000 on do not exist in this user namespace",
	  "--user 1000:1000" },
	{ .name = "ids that end one too early", 0, { { "/proc/self/gid_map", "0 0 2000065535\n" } }, "group ids",
	  EINVAL, "id_range", KS_CHECK_FAIL, "ids from 2000000000 on do not exist in this user namespace",
	  "--user 1000:1000" },
	{ .name = "ids that just suffice", 0, { { "/proc/self/gid_map", "0 0 2000065536\n" } }, NULL, 0, "id_range",
	  KS_CHECK_OK, "ids from 2000000000 on exist", NULL },
	/* what confines us */
	{ .name = "seccomp", 1000, { { SELF_STATUS, "Seccomp:\t2\n" } }, "launcher namespaces", EPERM,
	  "seccomp_profile", KS_CHECK_FAIL, "a seccomp filter lies around the sidecar",
	  "--security-opt seccomp=unconfined" },
	{ .name = "seccomp that answers ENOSYS", 1000, { { SELF_STATUS, "Seccomp:\t2\n" } }, "bind /usr", ENOSYS,
	  "seccomp_profile", KS_CHECK_FAIL, "a seccomp filter lies around the sidecar",
	  "seccompProfile.type: Unconfined" },
	{ .name = "seccomp that lets boxes be", 1000, { { SELF_STATUS, "Seccomp:\t2\n" } }, NULL, 0,
	  "seccomp_profile", KS_CHECK_OK, "a seccomp filter lies around the sidecar; boxes start all the same", NULL
	  },
	{ .name = "AppArmor", 1000, { { "/proc/self/attr/current", "docker-default (enforce)\n" } }, "root", EACCES,
	  "apparmor_profile", KS_CHECK_FAIL, "docker-default (enforce)", "--security-opt apparmor=unconfined" },
	{ .name = "AppArmor by its newer name", 1000, { { "/proc/self/attr/apparmor/current", "snap.x (enforce)\n" },
	  { "/proc/self/attr/current", "unconfined_u:unconfined_r\n" } }, "root", EACCES, "apparmor_profile",
	  KS_CHECK_FAIL, "snap.x (enforce)", "sudo dmesg | grep apparmor=" },
	{ .name = "SELinux", 1000, { { "/sys/fs/selinux/enforce", "1" } }, "session proc", EACCES, "selinux",
	  KS_CHECK_FAIL, "enforcing", "sudo ausearch -m avc -ts recent" },
	{ .name = "SELinux, permissive", 1000, { { "/sys/fs/selinux/enforce", "0" } }, NULL, 0, "selinux",
	  KS_CHECK_OK, "not enforcing", NULL },
	{ .name = "masked proc", 1000, { { MOUNTINFO, TOP PROC
	  "31 23 0:50 /null /proc/kcore rw - tmpfs tmpfs rw\n32 23 0:51 / /proc/acpi ro - tmpfs tmpfs ro\n" }, {
	  SELF_STATUS, "Seccomp:\t2\n" } }, "session proc", EPERM, "proc_masked", KS_CHECK_FAIL,
	  "2 mounts over files of /proc, the first is /proc/kcore (tmpfs)", "--security-opt systempaths=unconfined" },
	{ .name = "lxcfs", 1000, { { MOUNTINFO, TOP PROC
	  "31 23 0:50 /proc/meminfo /proc/meminfo rw - fuse.lxcfs lxcfs rw\n" } }, "proc /proc", EPERM, "proc_masked",
	  KS_CHECK_FAIL, "1 mount over files of /proc, the first is /proc/meminfo (fuse.lxcfs)", "without lxcfs" },
	{ .name = "a part of proc", 1000, { { MOUNTINFO, TOP "23 22 0:21 /sys /proc rw - proc proc rw\n" } },
	  "session proc", EPERM, "proc_masked", KS_CHECK_FAIL, "/proc is no proc file system, or a part of one",
	  "unmask=ALL" },
	{ .name = "propagation", 1000, { { "/proc/self/attr/current", "docker-default (enforce)\n" } }, "propagation",
	  EACCES, "mount_propagation", KS_CHECK_FAIL, "mount_propagation_denied: / could not be made private",
	  "appArmorProfile.type: Unconfined" },
	{ .name = "propagation on Ubuntu", 1000, { { APPARMOR, "1\n" } }, "propagation", EACCES, "apparmor_userns",
	  KS_CHECK_FAIL, "kernel.apparmor_restrict_unprivileged_userns = 1", "userns," },
	{ .name = "a chroot", 1000, { { MOUNTINFO, "23 22 0:21 / /proc rw - proc proc rw\n" } },
	  "launcher namespaces", EPERM, "root_mount", KS_CHECK_FAIL, "/ is no mount point: this is a chroot",
	  "systemd-nspawn -D DIR" },
	{ .name = "a chroot into a mount", 0, { { NULL, NULL } }, "user namespace", EPERM, "root_mount",
	  KS_CHECK_FAIL, "ext4; but step 'user namespace' failed", "pivot_root instead of chroot" },
	{ .name = "an initramfs", 0, { { MOUNTINFO, "1 1 0:2 / / rw - rootfs rootfs rw\n" PROC } }, "pivot_root",
	  EINVAL, "root_mount", KS_CHECK_FAIL, "/ is the kernel's first ramfs", "switch_root to a tmpfs" },
	{ .name = "lo, and nothing else to see", 1000, { { NULL, NULL } }, "network", EPERM, "loopback",
	  KS_CHECK_FAIL, "lo could not be raised: user namespaces are restricted here",
	  "apparmor_userns, seccomp_profile and selinux" },
	{ .name = "lo under seccomp", 1000, { { SELF_STATUS, "Seccomp:\t2\n" } }, "network", EPERM, "seccomp_profile",
	  KS_CHECK_FAIL, "a seccomp filter lies around the sidecar", "--security-opt seccomp=unconfined" },
	/* files */
	{ .name = "no tty", 1000, { { "/dev/tty", NO_FILE }, { "/dev/full", NO_FILE } }, "", ENOENT, "devices",
	  KS_CHECK_FAIL, "no such devices in /dev: full tty", "mount -t devtmpfs dev /dev" },
	{ .name = "a file for a device", 1000, { { "/dev/zero", NO_FILE }, { "/dev/zero", "0" } }, "bind /dev/zero",
	  ENODEV, "devices", KS_CHECK_FAIL, "no such devices in /dev: zero", "docker and podman make them" },
	{ .name = "nodev", 1000, { { MOUNTINFO, TOP PROC "25 22 0:5 / /dev rw,nodev - tmpfs tmpfs rw\n" } }, NULL, 0,
	  "devices", KS_CHECK_WARN, "/dev is mounted nodev: code in a box cannot open /dev/null",
	  "mount -t devtmpfs dev /dev" },
	{ .name = "/usr without exec", 1000, { { MOUNTINFO, TOP PROC
	  "27 22 0:60 / /usr ro,noexec - ext4 /dev/vdb ro\n" }, { APPARMOR, "1\n" } }, "exec", EACCES, "usr",
	  KS_CHECK_FAIL, "/usr is mounted noexec", "sudo mount -o remount,exec /usr;" },
	{ .name = "no /usr", 1000, { { "/usr/bin/true", NO_FILE }, { "/usr/bin/", NO_FILE } }, "exec", ENOENT, "usr",
	  KS_CHECK_FAIL, "there is no /usr/bin", "dir:/path/to/rootfs" },
	{ .name = "/tmp without exec", 1000, { { MOUNTINFO, TOP PROC "28 22 0:61 / /tmp rw,noexec - tmpfs tmpfs rw\n"
	  } }, NULL, 0, "state_directory", KS_CHECK_WARN,
	  "/tmp/kern-sidecar-1000/01234567: /tmp is mounted noexec, programs built in a workspace will not run",
	  "export KERN_STATE_DIR=~/.cache/kern" },
	{ .name = "root on overlayfs", 0, { { MOUNTINFO, "22 1 0:1 / / rw - overlay overlay rw,lowerdir=/a\n" PROC }
	  }, NULL, 0, "workspace_idmap", KS_CHECK_WARN,
	  "/home/me/project is on overlay, which takes no id map: a workspace there that root owns is refused",
	  "mapOwner: true" },
	{ .name = "root on fuse", 0, { { MOUNTINFO, TOP PROC "29 22 0:1 / /home rw - fuse.sshfs me@there: rw\n" } },
	  NULL, 0, "workspace_idmap", KS_CHECK_WARN,
	  "/home/me/project is on fuse.sshfs, which takes no id map: a workspace there that root owns is refused",
	  "chown -R 1000:1000" },
	{ .name = "a user on overlayfs", 1000, { { MOUNTINFO, "22 1 0:1 / / rw - overlay overlay rw\n" PROC } }, NULL,
	  0, "workspace_idmap", KS_CHECK_OK, "not root: not needed", NULL },
	{ .name = "no certificates", 1000, { { "/etc/ssl/certs/ca-certificates.crt", NO_FILE } }, NULL, 0,
	  "tls_roots", KS_CHECK_WARN, "none: TLS connections from a box will fail",
	  "sudo apt-get install ca-certificates" },
	{ .name = "Fedora's certificates", 1000, { { "/etc/ssl/certs/ca-certificates.crt", NO_FILE }, {
	  "/etc/pki/tls/certs/ca-bundle.crt", "" } }, NULL, 0, "tls_roots", KS_CHECK_OK,
	  "/etc/pki/tls/certs/ca-bundle.crt", NULL },
	/* amounts */
	{ .name = "little memory", 1000, { { "/proc/meminfo", "MemTotal:       524287 kB\n" } }, NULL, 0, "memory",
	  KS_CHECK_WARN, "511 MiB (/proc/meminfo)", "memoryMb: 255" },
	{ .name = "just enough memory", 1000, { { "/proc/meminfo", "MemTotal:       524288 kB\n" } }, NULL, 0,
	  "memory", KS_CHECK_OK, "512 MiB (/proc/meminfo)", NULL },
	{ .name = "a small container", 1000, { { "/sys/fs/cgroup/memory.max", "268435456\n" } }, NULL, 0, "memory",
	  KS_CHECK_WARN, "256 MiB (/sys/fs/cgroup/memory.max)", "memoryMb: 128" },
	{ .name = "an unlimited one", 1000, { { "/sys/fs/cgroup/memory.max", "max\n" } }, NULL, 0, "memory",
	  KS_CHECK_OK, "15921 MiB (/proc/meminfo)", NULL },
	{ .name = "few descriptors", 1000, { { "/proc/self/limits",
	  "Max open files            1024                 4096                 files\n" } }, NULL, 0, "open_files",
	  KS_CHECK_WARN, "1024", "ulimit -n 65536" },
	{ .name = "one too few", 1000, { { "/proc/self/limits",
	  "Max open files            1599                 4096                 files\n" } }, NULL, 0, "open_files",
	  KS_CHECK_WARN, "1599", "--ulimit nofile=65536" },
	{ .name = "just enough", 1000, { { "/proc/self/limits",
	  "Max open files            1600                 4096                 files\n" } }, NULL, 0, "open_files",
	  KS_CHECK_OK, "1600", NULL },
	{ .name = "no descriptor left", 1000, { { NULL, NULL } }, "launcher namespaces", EMFILE, "open_files",
	  KS_CHECK_FAIL, "65536; but step 'launcher namespaces' failed", "LimitNOFILE=" },
	{ .name = "few processes", 1000, { { "/proc/self/limits",
	  "Max processes             511                  511                  processes\n" } }, NULL, 0,
	  "process_limit", KS_CHECK_WARN, "511", "ulimit -u 16384" },
	{ .name = "unlimited processes", 1000, { { "/proc/self/limits",
	  "Max processes             unlimited            unlimited            processes\n" } }, NULL, 0,
	  "process_limit", KS_CHECK_OK, "unlimited", NULL },
	{ .name = "no process left", 1000, { { NULL, NULL } }, "session init", EAGAIN, "process_limit", KS_CHECK_FAIL,
	  "95966; but step 'session init' failed", "docker run --pids-limit -1" },
	{ .name = "swap that does not count", 0, { { "/proc/swaps", "Filename\tType\n/dev/vdb\tpartition\n" }, {
	  "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n" } }, NULL, 0, "swap", KS_CHECK_WARN,
	  "swap is in use, and cgroup v1 does not count it here: a box can use more than its cap", "swapaccount=1" },
	{ .name = "swap that counts", 0, { { "/proc/swaps", "Filename\tType\n/dev/vdb\tpartition\n" }, {
	  "/sys/fs/cgroup/memory/memory.limit_in_bytes", "1" }, { "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes",
	  "1" } }, NULL, 0, "swap", KS_CHECK_OK, "swap is in use, and counts", NULL },
	/* a cause that is there but is not to blame */
	{ .name = "an innocent suspect", 1000, { { SELF_STATUS, "Seccomp:\t2\n" } }, "home", ENOSPC,
	  "seccomp_profile", KS_CHECK_WARN, "a seccomp filter lies around the sidecar", "seccomp=unconfined", .behind
	  = true },
};
/* clang-format on */

struct limit_case {
	const char *name;
	uid_t uid;
	const char *mounts, *path, *text, *runtime_dir;
	enum ks_limit_kind kind;
	const char *backend, *reason;
	const char *id, *found, *fix; /* a check that warns besides the limit itself, or NULL; its fix */
	const char *cure;	      /* of the limit */
	bool no_systemd, no_bus;
};

#define V2 "26 22 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
#define V1 "26 22 0:26 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n"

/* clang-format off */
static const struct limit_case limit_cases[] = {
	{ .name = "not delegated", 1000, TOP PROC V2, NULL, NULL, "/run/user/1000", KS_LIMIT_MEMORY, "none",
	  "systemd: Permission denied; not delegated to uid 1000: /sys/fs/cgroup/user.slice", NULL, NULL, NULL,
	  "systemd-run --user --scope -p Delegate=yes kern-sidecar --stdio" },
	{ .name = "ssh without a user manager", 1000, TOP PROC V2, NULL, NULL, NULL, KS_LIMIT_MEMORY, "none",
	  "systemd: no user bus: No medium found; x", "user_manager",
	  "XDG_RUNTIME_DIR is not set, and there is no bus of a user manager", "sudo loginctl enable-linger $USER",
	  "see user_manager", .no_bus = true },
	{ .name = "a runtime directory without a bus", 1000, TOP PROC V2, NULL, NULL, "/run/user/1000", KS_LIMIT_PIDS,
	  "none", "systemd: no user bus; x", "user_manager",
	  "XDG_RUNTIME_DIR is set, and there is no bus of a user manager",
	  "export XDG_RUNTIME_DIR=/run/user/$(id -u)", "see user_manager", .no_bus = true },
	{ .name = "read-only in a container", 0, TOP PROC
	  "26 22 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n", "/.dockerenv", "", NULL, KS_LIMIT_MEMORY,
	  "none", "cannot make a cgroup: Read-only file system: /sys/fs/cgroup", "cgroup_mount",
	  "/sys/fs/cgroup is read-only", "docker run --cgroupns=private --security-opt writable-cgroups=true",
	  "see cgroup_mount", .no_systemd = true },
	{ .name = "read-only by its super block", 0, TOP PROC
	  "26 22 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup ro\n", NULL, NULL, NULL, KS_LIMIT_MEMORY, "none",
	  "x", "cgroup_mount", "/sys/fs/cgroup is read-only", "sudo mount -o remount,rw /sys/fs/cgroup",
	  "see cgroup_mount" },
	{ .name = "none mounted", 0, TOP PROC, NULL, NULL, NULL, KS_LIMIT_MEMORY, "none",
	  "no memory controller is mounted at /sys/fs/cgroup", "cgroup_mount",
	  "no cgroups are mounted at /sys/fs/cgroup", "sudo mount -t cgroup2 cgroup2 /sys/fs/cgroup",
	  "see cgroup_mount" },
	{ .name = "none mounted in WSL2", 0, TOP PROC, OSRELEASE, "6.6.87.2-microsoft-standard-WSL2\n", NULL,
	  KS_LIMIT_MEMORY, "none", "x", "cgroup_mount", "no cgroups are mounted at /sys/fs/cgroup",
	  "/etc/wsl.conf: [boot] systemd=true", "see cgroup_mount" },
	{ .name = "internal processes", 0, TOP PROC V2, "/.dockerenv", "", NULL, KS_LIMIT_MEMORY, "none",
	  "processes besides the sidecar in /sys/fs/cgroup", NULL, NULL, NULL,
	  "xargs -rn1 <cgroup.procs >init/cgroup.procs", .no_systemd = true },
	{ .name = "busy", 0, TOP PROC V2, NULL, NULL, NULL, KS_LIMIT_MEMORY, "none",
	  "cannot make a cgroup: Device or resource busy: /sys/fs/cgroup", NULL, NULL, NULL,
	  "exec kern-sidecar --stdio", .no_systemd = true },
	{ .name = "root under systemd", 0, TOP PROC V2, NULL, NULL, NULL, KS_LIMIT_CPU, "none",
	  "systemd: x; systemd's own (no Delegate=yes): /sys/fs/cgroup/a", NULL, NULL, NULL,
	  "systemd-run --scope -p Delegate=yes kern-sidecar --stdio" },
	{ .name = "cpu not delegated", 1000, TOP PROC V2, NULL, NULL, "/run/user/1000", KS_LIMIT_CPU, "v2",
	  "the controller is not available in /sys/fs/cgroup/user.slice", NULL, NULL, NULL,
	  "Delegate=cpu cpuset io memory pids" },
	{ .name = "v1 and a user", 1000, TOP PROC V1, NULL, NULL, "/run/user/1000", KS_LIMIT_MEMORY, "none",
	  "cannot make a cgroup: Permission denied: /", NULL, NULL, NULL,
	  "systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=all" },
	{ .name = "a user without systemd", 1000, TOP PROC V2, NULL, NULL, NULL, KS_LIMIT_MEMORY, "none",
	  "systemd: not running here; not delegated to uid 1000: /sys/fs/cgroup", NULL, NULL, NULL,
	  "sudo chown -R $USER /sys/fs/cgroup/kern", .no_systemd = true },
};
/* clang-format on */
