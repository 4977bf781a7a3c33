"""Opens the transactions of a directory as a workspace does."""

from kaiza.store.changes.blob_store import BlobStore
from kaiza.store.changes.journal import JournalStore
from kaiza.store.changes.transaction import TransactionManager
from kaiza.store.disk import state_dir
from kaiza.store.disk.kaiza_dir import KaizaDir
from kaiza.store.disk.state_key import StateKey


def open_transactions(files):
    """A manager for a ConfinedRoot; its first change creates `.kaiza`."""
    kaiza_dir = KaizaDir(files.fd)
    journals = JournalStore(kaiza_dir, StateKey(state_dir.path_of(files.root)))
    return TransactionManager(files, BlobStore(kaiza_dir), journals)
