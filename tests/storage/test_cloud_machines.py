"""How machines, pods and tasks of a cloud get credentials, from a cloud on this machine.

What our library for stores (obstore) does already: each way ends in a request that is signed by the
keys, or has the token, of the fake cloud. Tasks on ECS are left out: their address for keys is
always 169.254.170.2.
"""

from __future__ import annotations

import datetime as dt
import http.server
import json
import os
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import variantlake as vl
from tests import corpora
from variantlake.errors import VariantLakeError

FAR = "2099-01-01T00:00:00Z"
KEYS = {"AccessKeyId": "of-cloud", "SecretAccessKey": "s", "Token": "t", "Expiration": FAR}
STS = f"""<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>of-cloud</AccessKeyId>
<SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>{FAR}</Expiration>
</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"""
TOKEN = json.dumps(
    {"access_token": "of-cloud", "expires_in": 3600, "expires_on": "4070908800"}
    | {"token_type": "Bearer", "resource": "x"}
)
ANSWERS = {
    "AssumeRoleWithWebIdentity": STS,
    "/keys": json.dumps(KEYS),
    "/latest/api/token": "of-machine",
    "/security-credentials/role": json.dumps({**KEYS, "Code": "Success"}),
    "/security-credentials/": "role",
    "/service-accounts/default/token": TOKEN,
    "/oauth2/": TOKEN,
    "/identity": TOKEN,
}


class Cloud(http.server.BaseHTTPRequestHandler):
    """Gives credentials, and refuses every object."""

    asked: list[tuple[str, dict[str, str]]]

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.asked.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
        found = next((text for part, text in ANSWERS.items() if part in self.path), None)
        body = (found or "").encode()
        self.send_response(403 if found is None else 200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_PUT = do_HEAD = do_GET  # noqa: N815 - as http.server calls them

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def cloud() -> Iterator[http.server.ThreadingHTTPServer]:
    handler = type("Handler", (Cloud,), {"asked": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    yield server
    if thread.is_alive():
        server.shutdown()
    server.server_close()


def served(server: http.server.ThreadingHTTPServer, scheme: str = "http") -> str:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"{scheme}://127.0.0.1:{server.server_port}"


@pytest.fixture(autouse=True)
def _bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that says nothing of clouds."""
    for name in os.environ:
        if name.startswith(("AWS_", "GOOGLE_", "AZURE_", "VARIANTLAKE_", "GCE_", "IDENTITY_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("VARIANTLAKE_RETRY_SECONDS", "0")
    (tmp_path / "token").write_text("of-pod")


WAYS = {
    "pod identity on EKS": (
        "s3://eks/t",
        {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": "URL/keys",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "TOKEN",
        },
        "/keys",
    ),
    "machine at AWS": (
        "s3://ec2/t", {"AWS_METADATA_ENDPOINT": "URL"}, "/latest/api/token",
    ),
    "machine at Google": (
        "gs://gce/t",
        {"VARIANTLAKE_CLOUD_METADATA": "true", "GCE_METADATA_HOST": "HOST"},
        "/computeMetadata/",
    ),
    "workload identity at Azure": (
        "az://aks/t",
        {
            "AZURE_FEDERATED_TOKEN_FILE": "TOKEN", "AZURE_CLIENT_ID": "c",
            "AZURE_TENANT_ID": "tenant", "AZURE_AUTHORITY_HOST": "URL",
        },
        "/tenant/oauth2/",
    ),
    "function at Azure": (
        "az://app/t",
        {"IDENTITY_ENDPOINT": "URL/identity", "IDENTITY_HEADER": "h"},
        "/identity",
    ),
    "machine at Azure": (
        "az://vm/t",
        {"AZURE_MSI_ENDPOINT": "URL/identity", "VARIANTLAKE_CLOUD_METADATA": "true"},
        "/identity",
    ),
}  # fmt: skip
STORES = {
    "s3": {"AWS_ENDPOINT": "URL", "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"},
    "gs": {"GOOGLE_BASE_URL": "URL", "GOOGLE_ALLOW_HTTP": "true"},
    "az": {
        "AZURE_STORAGE_ACCOUNT_NAME": "account", "AZURE_STORAGE_ENDPOINT": "URL",
        "AZURE_ALLOW_HTTP": "true",
    },
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_what_a_cloud_gives_signs_requests(
    way: str,
    cloud: http.server.ThreadingHTTPServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, variables, asks = WAYS[way]
    address = served(cloud)
    for name, text in {**STORES[url[:2]], **variables}.items():
        value = text.replace("URL", address).replace("TOKEN", str(tmp_path / "token"))
        monkeypatch.setenv(name, value.replace("HOST", address.removeprefix("http://")))
    asked = check_signed(cloud, url, asks)
    if "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE" in variables:
        assert asked[0][1]["authorization"] == "of-pod"


def check_signed(
    cloud: http.server.ThreadingHTTPServer, url: str, asks: str
) -> list[tuple[str, dict[str, str]]]:
    """A table's location that is asked for in vain, after credentials."""
    with pytest.raises(VariantLakeError) as failed:
        vl.Table.open(url)
    asked: list[tuple[str, dict[str, str]]] = cloud.RequestHandlerClass.asked  # type: ignore[attr-defined]  # Cloud
    assert asked[0][0].startswith(asks)
    of_objects = [headers for path, headers in asked if url.split("/")[2] in path]
    assert len(of_objects) > 0
    assert all("of-cloud" in headers["authorization"] for headers in of_objects)
    assert "are the credentials right" in failed.value.hint
    return asked


def test_a_web_identity_on_eks(
    cloud: http.server.ThreadingHTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Amazon's token service is asked with encryption alone."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(tmp_path / "localhost.pem"))
    cloud.socket = context.wrap_socket(cloud.socket, server_side=True)
    address = served(cloud, "https")
    for name, value in {
        "AWS_ENDPOINT": address,
        "AWS_ENDPOINT_URL_STS": address,
        "AWS_ALLOW_INVALID_CERTIFICATES": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ROLE_ARN": "arn:aws:iam::1:role/x",
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"),
    }.items():
        monkeypatch.setenv(name, value)
    asked = check_signed(cloud, "s3://irsa/t", "/?Action=AssumeRoleWithWebIdentity")
    assert "WebIdentityToken=of-pod" in asked[0][0]


def certificate(file: Path) -> Path:
    """A key and its own certificate, for an hour."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        corpora.missing("cryptography")
    key, now = ec.generate_private_key(ec.SECP256R1()), dt.datetime.now(dt.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1)
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .sign(key, hashes.SHA256())
    )
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    file.write_bytes(
        made.public_bytes(encoding)
        + key.private_bytes(encoding, form, serialization.NoEncryption())
    )
    return file
