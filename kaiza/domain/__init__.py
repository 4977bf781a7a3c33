"""Values and laws; nothing here touches a disk, a clock or chance."""
