"""HTTPS with a certificate nobody knows: the fingerprint decides, for every command."""
import subprocess

import pytest
from serving import Market


@pytest.fixture
def market(tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", certificate,
                    "-subj", "/CN=somebody", "-days", "2"], check=True, capture_output=True)
    market = Market(tmp_path / "data", "--no-local-lender", "--tls-cert", str(certificate),
                    "--tls-key", str(key))
    yield market
    assert market.stop() == 0


def test_only_the_pinned_key_is_trusted(souk, market):
    assert market.url.startswith("https://")
    fingerprint = market.ready["fingerprint"]
    refused = souk("prices", "--server", market.url, code=5)
    assert "certificate" in refused.stderr and "--fingerprint" in refused.stderr
    other = ("0" if fingerprint[0] != "0" else "1") + fingerprint[1:]
    assert souk("prices", "--server", market.url, "--fingerprint", other, code=5).stdout == ""
    assert "CORE" in souk("prices", "--server", market.url, "--fingerprint", fingerprint).stdout


def test_an_account_remembers_the_fingerprint(souk, market):
    fingerprint = market.ready["fingerprint"]
    souk("account", "open", "--name", "ada", "--server", market.url, "--fingerprint", fingerprint)
    assert "Account:   ada" in souk("account").stdout
    command = souk("machines", "add").stdout
    assert f"--server {market.url} --fingerprint {fingerprint} --code " in command


def test_an_untrusted_certificate_and_a_wrong_scheme_are_told_with_what_to_do(souk, market,
                                                                               tmp_path):
    lent = ("lend", "--state-dir", tmp_path / "lend", "--code", "code")
    refused = souk(*lent, "--server", market.url, code=5)
    assert "--fingerprint" in refused.stderr and "souk machines add" in refused.stderr
    plain = market.url.replace("https://", "http://")
    for arguments in (("prices",), lent):
        assert "https://" in souk(*arguments, "--server", plain, code=7).stderr.split(plain)[1]


def test_a_market_without_https_is_told_as_such(souk, tmp_path):
    market = Market(tmp_path / "data", "--no-local-lender")
    try:
        secure = market.url.replace("http://", "https://")
        refused = souk("prices", "--server", secure, "--fingerprint", "0" * 64, code=7)
        assert "does not speak HTTPS" in refused.stderr
    finally:
        assert market.stop() == 0
