"""S17: whatever address somebody names, this server reaches nothing that only it can reach."""

import ipaddress

import httpx
import pytest

from factwire.serving import outgoing_requests
from factwire.serving.outgoing_requests import (
    OUTGOING_CODES,
    OutgoingFailed,
    OutgoingHttp,
    OutgoingRefused,
    OutgoingRules,
    is_public,
)

pytestmark = [pytest.mark.asyncio, pytest.mark.requirement("hub.outgoing")]

PUBLIC = "93.184.216.34"

HOSTILE = [
    "https://127.0.0.1/",
    "https://127.8.9.10/",
    "https://0.0.0.0/",
    "https://0.1.2.3/",
    "https://10.0.0.5/",
    "https://172.16.0.1/",
    "https://172.31.255.255/",
    "https://192.168.1.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://169.254.170.2/v2/credentials",
    "https://168.63.129.16/machine",
    "https://100.64.0.1/",
    "https://100.100.100.200/latest/meta-data/",
    "https://192.0.0.192/",
    "https://192.0.2.1/",
    "https://198.18.0.1/",
    "https://198.51.100.7/",
    "https://203.0.113.9/",
    "https://224.0.0.1/",
    "https://240.0.0.1/",
    "https://255.255.255.255/",
    "https://[::1]/",
    "https://[::]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:a9fe:a9fe]/",
    "https://[::127.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[64:ff9b:1::1]/",
    "https://[fe80::1]/",
    "https://[fc00::1]/",
    "https://[fd00:ec2::254]/",
    "https://[ff02::1]/",
    "https://[2001:db8::1]/",
    "https://[2002:7f00:1::]/",
    "https://[2001::1]/",
    "https://[100::1]/",
    "https://localhost/",
    "https://LOCALHOST./",
    "https://internal.example/",
    "https://both.example/",
    "https://2130706433/",
    "https://0x7f.0.0.1/",
    "https://0177.0.0.1/",
    "https://127.1/",
    "http://public.example/",
    "ftp://public.example/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:25/_HELO",
    "https://user:pass@public.example/",
    "https://public.example@127.0.0.1/",
    "https://public.example:22/",
    "https://public.example:25/",
    "https://public.example:0/",
    "https://public.example:99999/",
    "https://public.example\\@127.0.0.1/",
    "https://public.example\n.internal/",
    "https:///nohost",
    "https://",
    "//public.example/",
    "public.example",
    "",
    "https://" + "a" * 3_000,
    "https://[fe80::1%25eth0]/",
    "https://[::1",
]

NAMES = {
    "public.example": [PUBLIC],
    "localhost": ["127.0.0.1", "::1"],
    "localhost.": ["127.0.0.1"],
    "internal.example": ["10.1.2.3"],
    "both.example": [PUBLIC, "10.1.2.3"],
    # As the resolver of a machine reads addresses that are written otherwise.
    "2130706433": ["127.0.0.1"],
    "0x7f.0.0.1": ["127.0.0.1"],
    "0177.0.0.1": ["127.0.0.1"],
    "127.1": ["127.0.0.1"],
}


class Network:
    """Names that resolve as a test says, and connections that are noted instead of made."""

    def __init__(self) -> None:
        self.resolved: list[str] = []
        self.connected: list[httpx.Request] = []
        self.hosts: list[str] = []
        self.answers: dict[str, list[list[str]]] = {}
        self.failing: set[str] = set()

    async def resolve(self, host: str, port: int) -> list[str]:
        assert port > 0
        self.resolved.append(host)
        if host in self.answers:
            return self.answers[host].pop(0)
        if host in NAMES:
            return NAMES[host]
        try:
            return [str(ipaddress.ip_address(host))]
        except ValueError:
            raise OSError("no such name") from None

    def client(self) -> OutgoingHttp:
        def answer(request: httpx.Request) -> httpx.Response:
            self.connected.append(request)
            self.hosts.append(request.url.host)
            if request.url.host in self.failing:
                raise httpx.ConnectError("refused")
            body = httpx.ByteStream(b"y" * 999)
            return httpx.Response(302, headers={"location": "https://127.0.0.1/"}, stream=body)

        return OutgoingHttp(resolve=self.resolve, transport=httpx.MockTransport(answer))


@pytest.mark.parametrize("target", HOSTILE)
async def test_a_hostile_target_is_refused_before_anything_connects(target: str):
    network = Network()
    with pytest.raises((OutgoingRefused, OutgoingFailed)) as raised:
        await network.client().request("POST", target, OutgoingRules())
    assert raised.value.code in OUTGOING_CODES
    assert network.connected == []


async def test_the_table_is_long_enough_and_bites(monkeypatch: pytest.MonkeyPatch):
    assert len(HOSTILE) >= 40

    def trust_all(_: object) -> bool:
        return True

    monkeypatch.setattr(outgoing_requests, "is_public", trust_all)
    network = Network()
    await network.client().request("GET", "https://169.254.169.254/", OutgoingRules())
    await network.client().request("GET", "https://internal.example/", OutgoingRules())
    assert network.hosts == ["169.254.169.254", "10.1.2.3"]


async def test_a_name_is_resolved_once_and_the_checked_address_is_connected():
    network = Network()
    network.answers["rebind.example"] = [[PUBLIC], ["127.0.0.1"]]
    answer = await network.client().request(
        "POST", "https://rebind.example/hook?a=1", OutgoingRules(), content=b"{}", answer_bytes=100
    )
    request = network.connected[0]
    assert (network.resolved, len(network.connected)) == (["rebind.example"], 1)
    assert str(request.url) == f"https://{PUBLIC}/hook?a=1"
    assert request.headers["host"] == "rebind.example"
    assert request.extensions["sni_hostname"] == "rebind.example"
    # A redirect is an answer like any other, and a body is cut.
    assert (answer.status, answer.body) == (302, b"y" * 100)
    with pytest.raises(OutgoingRefused) as raised:
        await network.client().request("POST", "https://rebind.example/hook", OutgoingRules())
    assert raised.value.code == "target_address"


async def test_the_next_address_is_used_where_one_does_not_answer():
    network = Network()
    network.answers["two.example"] = [[PUBLIC, "93.184.216.35"]]
    network.failing = {PUBLIC}
    await network.client().request("GET", "https://two.example/", OutgoingRules())
    assert network.hosts == [PUBLIC, "93.184.216.35"]
    network.answers["none.example"] = [[PUBLIC]]
    with pytest.raises(OutgoingFailed) as raised:
        await network.client().request("GET", "https://none.example/", OutgoingRules())
    assert raised.value.code == "target_failed"


@pytest.mark.parametrize(
    ("target", "allowed"),
    [
        ("https://push.example/x", True),
        ("https://a.push.example/x", False),
        ("https://b.c.many.example/x", True),
        ("https://many.example/x", False),
        ("https://evilmany.example/x", False),
        ("https://push.example.evil/x", False),
        ("https://push.example./x", False),
        ("https://xn--mny-qla.example/x", False),
    ],
)
async def test_a_list_of_hosts_is_all_there_is(target: str, allowed: bool):
    rules = OutgoingRules(hosts=frozenset({"push.example", "*.many.example"}))
    if allowed:
        rules.check(target)
        return
    with pytest.raises(OutgoingRefused) as raised:
        rules.check(target)
    assert raised.value.code == "target_host"


async def test_only_what_the_operator_names_may_be_inside_and_plain():
    rules = OutgoingRules(trusted=frozenset({"127.0.0.1:8080", "internal.example"}))
    network = Network()
    await network.client().request("GET", "http://127.0.0.1:8080/", rules)
    await network.client().request("GET", "https://internal.example/", rules)
    assert [str(request.url) for request in network.connected] == [
        "http://127.0.0.1:8080/",
        "https://10.1.2.3/",
    ]
    for other in ("http://127.0.0.1:8081/", "https://127.0.0.1/", "https://both.example/"):
        with pytest.raises(OutgoingRefused):
            await network.client().request("GET", other, rules)


@pytest.mark.parametrize("address", ["93.184.216.34", "8.8.8.8", "2606:4700::1111", "2a00:1450::1"])
async def test_an_address_of_the_internet_is_public(address: str):
    assert is_public(ipaddress.ip_address(address))
