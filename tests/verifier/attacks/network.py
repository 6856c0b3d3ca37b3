"""Attacks by sockets. Control: each returns a text that begins with ``escaped`` in a plain interpreter."""


def connect(x):
    import socket

    with socket.create_connection(("127.0.0.1", x["port"]), timeout=5) as connection:
        connection.send(b"x")
    return "escaped"


def connect_below_the_socket_module(x):
    import _socket

    connection = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    connection.connect(("127.0.0.1", x["port"]))
    return "escaped"


def send_a_datagram(x):
    import socket

    return f"escaped: {socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', x['port']))}"


def connect_by_a_path(x):
    import socket

    socket.socket(socket.AF_UNIX).connect(x["socket"])
    return "escaped"


def connect_by_an_abstract_name(x):
    import socket

    socket.socket(socket.AF_UNIX).connect("\0" + x["tag"])
    return "escaped"


def listen(x):
    import socket

    return f"escaped: {socket.create_server(('127.0.0.1', 0)).getsockname()}"


def list_the_interfaces(x):
    import socket

    return f"escaped: {socket.if_nameindex()}"


def take_over_an_open_socket(x):
    """A control socket that was left open would take commands."""
    import socket

    for descriptor in range(64):
        try:
            found = socket.socket(fileno=descriptor)
            return f"escaped: {found.family.name} {found.send(b'x')}"
        except OSError:
            pass
    return "held"


def make_a_pair(x):
    import os
    import socket

    for make in (socket.socketpair, os.pipe):
        try:
            make()
            return "escaped"
        except OSError:
            pass
    return "held"
