"""Configuration: settings, workspace roots, tool schemas and the tool list."""

__all__ = ["editor_catalog", "roots", "schema_registry", "settings", "settings_layers", "trusted_config"]
