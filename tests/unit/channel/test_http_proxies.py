"""Which addresses are dialed through an HTTP proxy, and what it is told."""

import asyncio
import socket
import ssl

import pytest

from messiahs.channel.http_proxies import HttpProxy, connected_through, proxy_for
from messiahs.errors import ChannelError, public_of

_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def url_for(address: str, setting: str | None = None) -> str | None:
    proxy = proxy_for(address, setting)
    return None if proxy is None else proxy.url


def test_without_a_proxy_everything_is_dialed_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://for-plain-http:1")
    assert url_for("gate.example.org:7101") is None


def test_the_setting_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "of-all:3128")
    assert url_for("gate.example.org:7101") == "http://of-all:3128"
    assert url_for("gate.example.org:7101", "http://own:1") == "http://own:1"


@pytest.mark.parametrize("setting", [None, "http://own:1"])
@pytest.mark.parametrize(
    ("address", "is_direct"),
    [
        ("gate.example.org:7101", False),
        ("inner.example.net:7101", True),
        ("10.0.0.1:7101", True),
        ("10.0.0.2:7101", False),
        ("[2001:db8::1]:7101", False),
        ("[::1]:7101", True),
        ("127.0.0.1:7101", True),
        ("localhost:7101", True),
    ],
)
def test_hosts_in_no_proxy_and_this_machine_are_dialed_directly(
    monkeypatch: pytest.MonkeyPatch, setting: str | None, address: str, *, is_direct: bool
) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "example.net, 10.0.0.1")
    assert (url_for(address, setting) is None) is is_direct


@pytest.mark.parametrize("url", ["socks5://proxy:1", "http://", "http://proxy:port"])
def test_another_kind_of_proxy_in_the_environment_is_an_error(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("https_proxy", url)
    with pytest.raises(ChannelError, match="`https_proxy` of the environment is no HTTP proxy"):
        proxy_for("gate.example.org:7101", None)


def test_the_request_names_the_address_and_the_credentials() -> None:
    proxy = HttpProxy(url="", host="proxy", port=1, user="ann", password="secret")
    assert proxy.request("[2001:db8::1]:7101") == (
        b"CONNECT [2001:db8::1]:7101 HTTP/1.1\r\nHost: [2001:db8::1]:7101\r\n"
        b"Proxy-Authorization: Basic YW5uOnNlY3JldA==\r\n\r\n"
    )


@pytest.mark.parametrize("head", [b"HTTP/1.1 407 Who are you\r\n\r\n", b"SSH-2.0\r\n", b"HTTP/1.1 20\r\n", b""])
def test_any_other_answer_is_an_error(head: bytes) -> None:
    text = r"the HTTP proxy proxy:1 does not connect to it: (407 Who are you|no HTTP)"
    with pytest.raises(ChannelError, match=text) as caught:
        HttpProxy(url="", host="proxy", port=1).check(head)
    assert public_of(caught.value) == "its HTTP proxy does not connect"


def test_other_systems_do_not_read_the_address_of_a_proxy_that_is_not_reached() -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        proxy = HttpProxy(url="", host="127.0.0.1", port=mute.getsockname()[1])
        with pytest.raises(ChannelError, match=f"the HTTP proxy 127.0.0.1:{proxy.port} was not reached: ") as caught:
            asyncio.run(connected_through(proxy, "gate:1", ssl=ssl.create_default_context(), server_hostname="gate"))
    assert public_of(caught.value) == "its HTTP proxy does not connect"


@pytest.mark.parametrize("head", [b"HTTP/1.0 200\r\n\r\n", b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n"])
def test_an_agreement_has_any_text_and_headers(head: bytes) -> None:
    HttpProxy(url="", host="proxy", port=1).check(head)
