"""Commands on plans."""
