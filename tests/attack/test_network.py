"""The network of a box: none, and no way of making one. (`network: true` is the host's network by request; egress comes later.)"""

import os
import socket
import subprocess

import pytest

from boxes import attack
from expect import plain


@attack("F65")
def test_every_address_is_unreachable(box):
    """IPv4 and IPv6, datagrams too, metadata services, private networks, spelled in every way that a resolver takes: ENETUNREACH.
    A link-local address without an interface is EINVAL; its own loopback is there, and nobody listens."""
    code = (
        "import socket\nfor host in ('1.1.1.1', '10.0.0.1', '192.168.0.1', '172.17.0.1', '169.254.169.254', '100.64.0.1', '224.0.0.1', '255.255.255.255',\n"
        "             '2606:4700::1111', 'fd00:ec2::254', 'fe80::1', 'ff02::1', '64:ff9b::7f00:1', '::ffff:1.1.1.1', '16843009', '0x01010101', '01.01.01.01'):\n"
        "    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):\n"
        "        try:\n"
        "            family, _, _, _, address = socket.getaddrinfo(host, 53, type=kind)[0]\n"
        "            s = socket.socket(family, kind); s.settimeout(2)\n"
        "            s.connect(address) if kind == socket.SOCK_STREAM else s.sendto(b'x', address); print(host, kind, 'sent')\n"
        "        except OSError as e:\n"
        "            if e.errno != 101: print(host, kind, e.errno)\n"
        "for host in ('127.0.0.1', '2130706433', '0x7f.1', '0', '::1', '::ffff:127.0.0.1', 'localhost'):\n"
        "    try: socket.create_connection((host, 22), 2); print(host, 'open')\n"
        "    except OSError as e:\n"
        "        if e.errno != 111: print(host, e.errno)\n"
        "print('done')"
    )
    plain(box().python(code, timeoutMs=60_000), "fe80::1 1 22\ndone\n")


@attack("60", "F65")
def test_no_name_can_be_asked_for(box):
    """No resolver is configured, and none answers: DNS is no way out."""
    code = (
        "import socket, time\nbegin = time.monotonic()\nfor name in ('example.com', 'secret.evil.example', 'localhost.localdomain', 'a' * 60 + '.com'):\n"
        "    try: socket.getaddrinfo(name, 80); print(name)\n"
        "    except socket.gaierror: pass\n"
        "print(open('/etc/resolv.conf').read(), time.monotonic() - begin < 20)"
    )
    plain(box().python(code, timeoutMs=60_000), " True\n")


@attack("F65")
def test_listeners_of_the_host_are_out_of_reach(box):
    """TCP, UDP and an abstract socket that the host listens on; then another box's."""
    tcp = socket.create_server(("127.0.0.1", 0))
    tcp6 = (
        socket.create_server(("::1", 0), family=socket.AF_INET6)
        if socket.has_ipv6 and os.path.exists("/proc/net/if_inet6")
        else None
    )
    abstract = socket.socket(socket.AF_UNIX)
    name = f"kern-attack-{os.getpid()}"
    abstract.bind("\0" + name)
    abstract.listen()
    code = (
        "import socket\n"
        f"def t(f):\n    try: f(); print('reached')\n    except OSError as e: print(e.errno)\n"
        f"t(lambda: socket.create_connection(('127.0.0.1', {tcp.getsockname()[1]}), 2))\n"
        f"t(lambda: socket.create_connection(('::1', {tcp6.getsockname()[1] if tcp6 else 9}), 2))\n"
        f"t(lambda: socket.socket(socket.AF_UNIX).connect(chr(0) + {name!r}))\n"
        f"t(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).connect(chr(0) + '/tmp/.X11-unix/X0'))"
    )
    plain(box().python(code), "111\n111\n111\n111\n")
    for server in (tcp, tcp6, abstract):
        if server:
            server.close()


@attack("69")
def test_listeners_of_another_box_are_out_of_reach(box):
    boxes = box()
    listen = (
        "import socket, time\na = socket.create_server(('127.0.0.1', 4711)); u = socket.socket(socket.AF_UNIX); u.bind(chr(0) + 'kern-one'); u.listen()\n"
        "print('up', flush=True); time.sleep(100)"
    )
    future = boxes.start("/usr/bin/python3", "-c", listen)
    boxes.client.wait_for(lambda: boxes.client.output_events(future), "the listener", 30)
    code = (
        "import socket\nfor f in (lambda: socket.create_connection(('127.0.0.1', 4711), 2), lambda: socket.socket(socket.AF_UNIX).connect(chr(0) + 'kern-one')):\n"
        "    try: f(); print('reached')\n    except OSError as e: print(e.errno)"
    )
    plain(boxes.python(code), "111\n111\n")
    boxes.client.cancel(future)
    future.wait(30)


@attack("F65")
def test_no_interface_address_or_route_can_be_made(box):
    """NETLINK_ROUTE answers questions and takes no orders; no tun device, no ioctl that changes one."""
    code = (
        "import fcntl, os, socket, struct\n"
        "def ask(kind, flags, body):\n"
        "    s = socket.socket(16, 3, 0); s.settimeout(2)\n"
        "    s.send(struct.pack('<IHHII', 16 + len(body), kind, flags | 5, 1, 0) + body)\n"
        "    data = s.recv(65536); return struct.unpack('<i', data[16:20])[0] if data[4:6] == b'\\x02\\x00' else 'told'\n"
        "print(ask(18, 0x301, struct.pack('<BBHiII', 0, 0, 0, 0, 0, 0)))\n"  # RTM_GETLINK, dump
        "print(ask(16, 0x600, struct.pack('<BBHiII', 0, 0, 0, 0, 0, 0) + struct.pack('<HH4s', 8, 3, b'x0\\0\\0')))\n"  # RTM_NEWLINK
        "print(ask(20, 0x600, struct.pack('<BBBBi', 2, 24, 0, 0, 1) + struct.pack('<HH4s', 8, 2, bytes([10, 0, 0, 1]))))\n"  # RTM_NEWADDR
        "print(ask(24, 0x600, struct.pack('<BBBBBBBBI', 2, 0, 0, 0, 254, 4, 0, 1, 0) + struct.pack('<HHI', 8, 4, 1)))\n"  # RTM_NEWROUTE
        "s = socket.socket()\n"
        "for request in (0x8914, 0x8916, 0x8924, 0x8922, 0x8946):\n"
        "    try: fcntl.ioctl(s, request, struct.pack('16sHH28s', b'lo', 0, 0, b'')); print('done')\n"
        "    except OSError as e: print(e.errno)\n"
        "print(os.path.exists('/dev/net/tun'), open('/proc/net/dev').read().count(':'))"
    )
    result = box().python(code)
    lines = result["stdout"].splitlines()
    assert lines[:4] == ["told", "-1", "-1", "-1"], result
    assert all(line in ("1", "95", "22") for line in lines[4:8]), result  # flags, address, hardware address, MTU: EPERM
    assert lines[-1] == "False 1"


@attack("F65")
def test_privileged_ports_and_options(box):
    """Ports below 1024 of its own loopback need what nobody has; marks and bound devices, too."""
    code = (
        "import socket\ns = socket.socket()\n"
        "def t(f):\n    try: f(); print('done')\n    except OSError as e: print(e.errno)\n"
        "t(lambda: s.setsockopt(1, 36, 1))\n"  # SO_MARK
        "t(lambda: s.setsockopt(1, 32, 1 << 28))\n"  # SO_SNDBUFFORCE
        "t(lambda: s.setsockopt(0, 19, 1))\n"  # IP_TRANSPARENT
        "t(lambda: s.setsockopt(41, 19, 1))"
    )
    lines = box().python(code)["stdout"].splitlines()
    assert lines[:3] == ["1", "1", "1"] and lines[3] in ("1", "92", "22", "95"), lines


@attack("67")
def test_network_of_the_host_is_not_told(box):
    """/proc/net is the box's own: no connection, address, route or neighbour of the host."""
    script = "cat /proc/net/tcp /proc/net/udp /proc/net/tcp6 /proc/net/unix /proc/net/route /proc/net/arp /proc/net/fib_trie /proc/net/raw 2>/dev/null | grep -vE 'sl |Iface|IP address|^Num|^Main|^Local|^ *[+|].*--|127\\.|/32|/8|host|broadcast|link' | wc -l"
    plain(box().sh(script), "0\n")
    host = (
        subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout.split()
        if os.path.exists("/usr/bin/hostname")
        else []
    )
    for address in host:
        assert box().run("grep", "-rl", address, "/etc", "/proc/net", "/run")["stdout"] == ""


@attack("21", "B26")
@pytest.mark.parametrize("cid", [0, 1, 2, 3, 0xFFFFFFFF])
def test_hypervisor_is_out_of_reach(one_way, cid):
    """AF_VSOCK leads past every network namespace."""
    code = f"import socket\ntry: s = socket.socket(40, 1); s.connect(({cid}, 22)); print('reached')\nexcept OSError as e: print(e.errno)"
    plain(one_way().python(code), "97\n")
