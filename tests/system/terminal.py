"""A terminal of a chosen width for a program: what it shows, key presses and the screen's state."""
import fcntl
import os
import pty
import struct
import subprocess
import termios

from serving import HUNG_S


class Terminal:
    def __init__(self, columns):
        self.ours, self.theirs = pty.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))

    def close(self):
        os.close(self.ours)
        os.close(self.theirs)

    def has_echo(self):
        return bool(termios.tcgetattr(self.theirs)[3] & termios.ECHO)


def screen(souk, columns, *arguments, code=0):
    """The lines a command shows on a terminal; notes stay out of it."""
    terminal = Terminal(columns)
    process = subprocess.Popen([souk.program, *map(str, arguments)], stdin=subprocess.DEVNULL,
                               stdout=terminal.theirs, stderr=subprocess.PIPE,
                               env=souk.variables | {"NO_COLOR": "1"})
    os.close(terminal.theirs)
    shown = b""
    while True:
        try:
            part = os.read(terminal.ours, 4096)
        except OSError:  # a terminal without users reads as an error
            break
        if not part:
            break
        shown += part
    notes = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(HUNG_S) == code, notes
    os.close(terminal.ours)
    return shown.decode().replace("\r\n", "\n").splitlines(), notes
