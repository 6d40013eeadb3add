"""The systemd unit: hardened as far as sandboxes still start, and stopped by the daemon."""
import configparser
import pathlib

UNIT = pathlib.Path(__file__).resolve().parents[2] / "packaging" / "souk-lend.service"

# bubblewrap makes namespaces, names its host and mounts a /proc of its own; the last is refused
# wherever a part of the old one is hidden or read-only.
BREAKS_SANDBOXES = {
    "PrivateUsers", "ProtectControlGroups", "ProtectHostname", "ProtectKernelLogs",
    "ProtectKernelTunables", "ProtectProc", "ProcSubset", "RestrictNamespaces",
}


def service():
    unit = configparser.ConfigParser(interpolation=None, strict=False, delimiters=["="])
    unit.optionxform = str
    unit.read(UNIT)
    return unit["Service"]


def test_no_setting_keeps_sandboxes_from_starting():
    assert not BREAKS_SANDBOXES & set(service())


def test_stopping_asks_the_daemon_and_not_the_sandboxes():
    assert service()["KillMode"] == "mixed"


def test_the_daemon_has_no_privilege_to_lose():
    settings = service()
    assert settings["User"] == "souk"
    assert settings["NoNewPrivileges"] == "yes"
    assert settings["CapabilityBoundingSet"] == ""
    assert settings["ProtectSystem"] == "strict"
