"""Trust: what gives authority in a workspace, all of it kept outside the workspace."""

__all__ = [
    "adopted_settings",
    "binding",
    "http_tokens",
    "identity",
    "merged_plans",
    "signed_plans",
    "signers",
    "ssh_keygen",
    "trust_file",
]
