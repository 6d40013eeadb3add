#!/usr/bin/python3
"""logind's and NetworkManager's part of a system bus, as far as a lender asks them.

    desktop_services.py ADDRESS

Says "ready", then takes lines "PROPERTY VALUE", each answered by "ready".
"""
import sys

import dbus
import dbus.service
from dbus.mainloop.glib import DBusGMainLoop
from gi.repository import GLib

VALUES = {"IdleHint": dbus.Boolean(False), "IdleSinceHint": dbus.UInt64(0),
          "LidClosed": dbus.Boolean(False), "Metered": dbus.UInt32(0)}
NAMES = {"org.freedesktop.login1.Manager": ("IdleHint", "IdleSinceHint", "LidClosed"),
         "org.freedesktop.NetworkManager": ("Metered",)}


class Properties(dbus.service.Object):
    @dbus.service.method("org.freedesktop.DBus.Properties", in_signature="ss", out_signature="v")
    def Get(self, interface, name):  # noqa: N802 -- D-Bus calls it so
        if name not in NAMES.get(interface, ()):
            raise dbus.exceptions.DBusException("no such property")
        return VALUES[name]


def take_line(source, _condition):
    line = source.readline()
    if not line:
        loop.quit()
        return False
    name, value = line.split()
    VALUES[name] = type(VALUES[name])(int(value))
    print("ready", flush=True)
    return True


DBusGMainLoop(set_as_default=True)
bus = dbus.bus.BusConnection(sys.argv[1])
kept = [dbus.service.BusName("org.freedesktop.login1", bus),
        dbus.service.BusName("org.freedesktop.NetworkManager", bus),
        Properties(bus, "/org/freedesktop/login1"), Properties(bus, "/org/freedesktop/NetworkManager")]
loop = GLib.MainLoop()
GLib.io_add_watch(sys.stdin, GLib.IO_IN | GLib.IO_HUP, take_line)
print("ready", flush=True)
loop.run()
