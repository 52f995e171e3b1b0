"""What a sandbox hides: the home, known places of credentials, sockets, and Factwire's own data.

A read-only view of the machine is still a view: a key that can be read is a key that is lost, and a
socket answers through a read-only mount. So the whole home is hidden, but for what the policy names
and for the workspace; where the workspace is the home or holds it, known places are hidden one by
one.
"""

from typing import Final

HOME_CREDENTIALS: Final = (
    *(
        ".ssh",
        ".gnupg",
        ".pki",
        ".password-store",
        ".local/share/keyrings",
        ".local/share/kwalletd",
    ),
    *(".aws", ".azure", ".config/gcloud", ".config/doctl", ".oci", ".kube", ".docker"),
    *(".terraform.d", ".vault-token", ".config/op", ".config/sops", ".databrickscfg"),
    *(".netrc", ".authinfo", ".authinfo.gpg", ".git-credentials", ".config/git/credentials"),
    *(".config/gh", ".config/glab-cli", ".config/hub", ".npmrc", ".yarnrc.yml", ".pypirc"),
    *(".config/pip", ".gem/credentials", ".cargo/credentials", ".cargo/credentials.toml"),
    *(".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties"),
    *(".pgpass", ".my.cnf", ".mongorc.js", ".config/rclone", ".s3cfg", ".boto"),
    *(".claude", ".claude.json", ".codex", ".gemini", ".config/opencode", ".local/share/opencode"),
    *(".mozilla", ".config/google-chrome", ".config/chromium", ".thunderbird"),
    *(".bash_history", ".zsh_history", ".python_history", ".psql_history", ".node_repl_history"),
    *(".Xauthority", ".ICEauthority"),
)
"""Below the home: keys, tokens, browsers' profiles and histories of what was typed."""

SYSTEM_CREDENTIALS: Final = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers"),
    *("/etc/sudoers.d", "/etc/ssh", "/etc/ssl/private", "/etc/wireguard", "/etc/kubernetes"),
    *("/etc/NetworkManager/system-connections", "/etc/docker", "/var/lib/docker"),
    *("/var/lib/kubelet", "/var/spool/cron", "/home", "/root"),
)
"""Of the machine and of other people on it; most are closed to a user anyway, and open to root."""

EMPTY: Final = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - these become private, they are not used
"""Replaced by scratch folders: what others left there, and the sockets of every service."""
