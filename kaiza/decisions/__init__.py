"""The people's door: a decision is proposed, shown, made, recorded and applied. No agent can reach it.

One module for each thing that a person decides, and all of one form, as every tool is:

    propose(workspace, …) -> Proposal                   what would happen, as a value that can be shown
    decide(workspace, proposal, person) -> Decision     looked at again under the log's lock, recorded, then applied

Either raises a `RefusedError` whose message is for the person; then nothing was changed. Nothing here asks or prints.
"""
