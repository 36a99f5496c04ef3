"""Certificates of the servers and of their clients, made by openssl."""

import subprocess
from pathlib import Path

KEYS = {
    "p256": ["ecparam", "-name", "prime256v1", "-genkey", "-noout"],
    "p384": ["ecparam", "-name", "secp384r1", "-genkey", "-noout"],
    "rsa": ["genrsa", "2048"],
    "ed25519": ["genpkey", "-algorithm", "ed25519"],
}
AUTHORITY = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n"
END = "basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n"
LIST = """[ca]
default_ca = one
[one]
database = {0}/index.txt
default_md = sha256
default_crl_days = 300
crlnumber = {0}/crlnumber
"""


class Authority:
    """A folder with certificates. All are of P-256 unless a kind of key is named."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def openssl(self, *words: str) -> None:
        done = subprocess.run(["openssl", *words], cwd=self.folder, capture_output=True, text=True,
                              timeout=60)
        if done.returncode:
            raise OSError(f"openssl {words[0]}: {done.stderr[-300:]}")

    def key(self, name: str, kind: str = "p256") -> None:
        words = KEYS[kind]
        # (The number of bits is genrsa's last word.)
        end = words[-1:] if kind == "rsa" else []
        begin = words[:-1] if kind == "rsa" else words
        self.openssl(*begin, "-out", f"{name}.key", *end)

    def root(self, name: str) -> None:
        self.key(name)
        self.openssl("req", "-x509", "-key", f"{name}.key", "-out", f"{name}.pem", "-days", "300",
                     "-subj", f"/CN={name} authority", "-addext", "keyUsage=keyCertSign,cRLSign")

    def issue(self, name: str, issuer: str, subject: str, extensions: str, kind: str = "p256",
              days: str = "200") -> None:
        self.key(name, kind)
        self.openssl("req", "-new", "-key", f"{name}.key", "-subj", subject, "-out", f"{name}.csr")
        (self.folder / f"{name}.ext").write_text(extensions)
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{issuer}.pem",
                     "-CAkey", f"{issuer}.key", "-CAcreateserial", "-days", days,
                     "-extfile", f"{name}.ext", "-out", f"{name}.pem")

    def server(self, name: str, hosts: list[str], kind: str = "p256") -> None:
        """One with its issuer behind it, in `NAME.chain.pem`."""
        names = ",".join(f"DNS:{host}" for host in hosts)
        # (NSS wants RSA's to be for encryption, too, which no suite of today does.)
        usage = END.replace("Signature", "Signature,keyEncipherment") if kind == "rsa" else END
        extensions = f"{usage}extendedKeyUsage=serverAuth\nsubjectAltName={names},IP:127.0.0.1\n"
        self.issue(name, "issuer", f"/CN={hosts[0]}", extensions, kind)
        parts = [(self.folder / f"{part}.pem").read_text() for part in (name, "issuer")]
        (self.folder / f"{name}.chain.pem").write_text("".join(parts))

    def client(self, name: str, issuer: str, days: str = "200") -> None:
        extensions = f"{END}extendedKeyUsage=clientAuth\n"
        self.issue(name, issuer, f"/O=Example/CN={name}", extensions, days=days)
        # (curl and NSS take both of one file.)
        both = (self.folder / f"{name}.pem").read_text() + (self.folder / f"{name}.key").read_text()
        (self.folder / f"{name}.both.pem").write_text(both)

    def revoke(self, name: str, issuer: str) -> None:
        """Puts one on its issuer's list, `ISSUER.crl.pem`."""
        (self.folder / "index.txt").write_text("")
        (self.folder / "crlnumber").write_text("01\n")
        (self.folder / "ca.cnf").write_text(LIST.format(self.folder))
        words = ["ca", "-config", "ca.cnf", "-keyfile", f"{issuer}.key", "-cert", f"{issuer}.pem"]
        self.openssl(*words, "-revoke", f"{name}.pem")
        self.openssl(*words, "-gencrl", "-out", f"{issuer}.crl.pem")


def make(folder: Path) -> Path:
    """Makes all of them. `root.pem` is what clients of the servers trust."""
    made = Authority(folder)
    made.root("root")
    made.issue("issuer", "root", "/CN=issuer", AUTHORITY)
    made.server("p256", ["localhost"])
    made.server("p384", ["p384.test"], "p384")
    made.server("rsa", ["rsa.test", "localhost"], "rsa")
    made.server("ed25519", ["ed25519.test"], "ed25519")
    made.server("shared", ["open.test", "also-open.test", "asking.test"])
    made.server("wanting", ["required.test", "optional.test"])
    made.root("clients")
    made.root("others")
    made.client("good", "clients")
    made.client("revoked", "clients")
    made.client("expired", "clients", days="-1")
    made.client("foreign", "others")
    made.revoke("revoked", "clients")
    return folder
