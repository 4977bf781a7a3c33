"""Tools, prompts and resources that the conformance suite asks for. Test-only; see `conformance_server`.

A tool gets a `Visit` and returns its result, or raises a `RefusalError`, which becomes a JSON-RPC error.
"""

import base64
import hashlib
import hmac
import json
import struct
import zlib

INVALID_PARAMS, MISSING_CAPABILITY = -32602, -32021
KEY = b"only for tests"


class RefusalError(Exception):
    """A JSON-RPC error."""

    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.error = {"code": code, "message": message} | ({} if data is None else {"data": data})


def _png():
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0\xff\0\0")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def _wav():
    samples = b"\0\0" * 8
    form = struct.pack("<HHIIHH", 1, 1, 8000, 16000, 2, 16)
    body = b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", len(body)) + body


def text(words):
    return {"type": "text", "text": words}


def content(*blocks):
    return {"content": list(blocks)}


IMAGE = {"type": "image", "data": base64.b64encode(_png()).decode(), "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": base64.b64encode(_wav()).decode(), "mimeType": "audio/wav"}


def resource(uri, kind, words):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": words}}


def elicitation(message, **properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def sampling(prompt, limit=100):
    messages = [{"role": "user", "content": text(prompt)}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": limit}}


ROOTS = {"method": "roots/list", "params": {}}
NAME = elicitation("What is your name?", name={"type": "string"})
OK = elicitation("Please confirm", ok={"type": "boolean"})


def seal(state):
    """State with a seal that only this server can make."""
    return f"{state}.{hmac.new(KEY, state.encode(), hashlib.sha256).hexdigest()}"


def open_seal(visit):
    """The state that the client sent back; None in the first round."""
    sent = visit.params.get("requestState")
    if sent is None:
        return None
    state = str(sent).rpartition(".")[0]
    if sent != seal(state):
        raise RefusalError(INVALID_PARAMS, "requestState was altered. Send back what you were given.")
    return state


def ask(requests, state=None):
    return {"resultType": "input_required", "inputRequests": requests} | (
        {} if state is None else {"requestState": seal(state)}
    )


def answers(visit, requests):
    """The client's answers to these requests; None unless all of them are there."""
    given = visit.params.get("inputResponses")
    if "inputResponses" in visit.params and not isinstance(given, dict):
        raise RefusalError(INVALID_PARAMS, "inputResponses must be an object.")
    found = {name: (given or {}).get(name) for name in requests}
    return found if all(isinstance(answer, dict) for answer in found.values()) else None


def asks_once(requests, reply, state=None):
    """A tool that asks for input and replies when it has all of it."""

    def run(visit):
        known = open_seal(visit)
        given = answers(visit, requests)
        return ask(requests, state) if given is None or known != state else content(text(reply(given)))

    return run


def _many_rounds(visit):
    state = open_seal(visit)
    first = {"step1": elicitation("Step 1: What is your name?", name={"type": "string"})}
    second = {"step2": elicitation("Step 2: What is your favorite color?", color={"type": "string"})}
    if state == "step2" and answers(visit, second):
        return content(text("Both steps are done."))
    if state == "step1" and answers(visit, first):
        return ask(second, "step2")
    return ask(first, "step1")


def _only_what_the_client_can(visit):
    offered = {"sampling": sampling("Say hello"), "elicitation": NAME, "roots": ROOTS}
    return ask({name: request for name, request in offered.items() if name in visit.capabilities})


def _needs_sampling(visit):
    if "sampling" not in visit.capabilities:
        raise RefusalError(MISSING_CAPABILITY, "The client cannot sample.", {"requiredCapabilities": {"sampling": {}}})
    return content(text("The client can sample."))


def _log(visit):
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        if visit.wants_log():
            visit.notify("notifications/message", level="info", data=words)
    return content(text("logged"))


def _report_progress(visit):
    if visit.progress_token is not None:
        for done in (0, 50, 100):
            visit.notify("notifications/progress", progressToken=visit.progress_token, progress=done, total=100)
    return content(text("done"))


def _ask_while_running(request):
    """A tool that sends the client a request of its own and waits for its answer (revisions with a handshake)."""

    def run(visit):
        return content(text(json.dumps(visit.ask_client(request(visit.arguments)))))

    return run


def _elicit(visit_arguments):
    both = {"username": {"type": "string"}, "email": {"type": "string"}}
    return elicitation(visit_arguments.get("message", "Who are you?"), **both)


DEFAULTS = elicitation(
    "Check the defaults",
    name={"type": "string", "default": "John Doe"},
    age={"type": "integer", "default": 30},
    score={"type": "number", "default": 95.5},
    status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    verified={"type": "boolean", "default": True},
)
_OPTIONS = ["option1", "option2", "option3"]
_TITLED = [{"const": f"value{number}", "title": f"Choice {number}"} for number in (1, 2, 3)]
ENUMS = elicitation(
    "Choose",
    untitledSingle={"type": "string", "enum": _OPTIONS},
    titledSingle={"type": "string", "oneOf": _TITLED},
    legacyEnum={"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["One", "Two"]},
    untitledMulti={"type": "array", "items": {"type": "string", "enum": _OPTIONS}},
    titledMulti={"type": "array", "items": {"anyOf": _TITLED}},
)

_ANY = {"type": "object"}
_TEXT = {"type": "string"}
SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": _TEXT, "city": _TEXT}}},
    "properties": {
        "name": _TEXT,
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": _TEXT,
        "email": _TEXT,
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

TOOLS = {
    "test_simple_text": lambda _: content(text("This is a simple text response for testing.")),
    "test_image_content": lambda _: content(IMAGE),
    "test_audio_content": lambda _: content(AUDIO),
    "test_embedded_resource": lambda _: content(resource("test://embedded", "text/plain", "An embedded resource.")),
    "test_multiple_content_types": lambda _: content(
        text("Several:"), IMAGE, resource("test://mixed", "application/json", '{"test":"data"}')
    ),
    "test_error_handling": lambda _: content(text("This tool always fails.")) | {"isError": True},
    "test_tool_with_logging": _log,
    "test_tool_with_progress": _report_progress,
    "test_sampling": _ask_while_running(lambda arguments: sampling(arguments.get("prompt", "Hello"))),
    "test_elicitation": _ask_while_running(_elicit),
    "test_elicitation_sep1034_defaults": _ask_while_running(lambda _: DEFAULTS),
    "test_elicitation_sep1330_enums": _ask_while_running(lambda _: ENUMS),
    "test_missing_capability": _needs_sampling,
    "test_streaming_elicitation": asks_once({"user_name": NAME}, lambda _: "Hello!"),
    "test_logging_tool": _log,
    "test_trigger_tool_change": lambda visit: visit.announce("tools"),
    "test_trigger_prompt_change": lambda visit: visit.announce("prompts"),
    "test_input_required_result_elicitation": asks_once({"user_name": NAME}, lambda given: f"Hello, {given}!"),
    "test_input_required_result_sampling": asks_once(
        {"capital_question": sampling("What is the capital of France?")}, str
    ),
    "test_input_required_result_list_roots": asks_once({"client_roots": ROOTS}, str),
    "test_input_required_result_request_state": asks_once({"confirm": OK}, lambda _: "state-ok", "confirming"),
    "test_input_required_result_multiple_inputs": asks_once(
        {"user_name": NAME, "greeting": sampling("Generate a greeting", 50), "client_roots": ROOTS}, str, "three"
    ),
    "test_input_required_result_multi_round": _many_rounds,
    "test_input_required_result_tampered_state": asks_once({"confirm": OK}, lambda _: "state-ok", "sealed"),
    "test_input_required_result_capabilities": _only_what_the_client_can,
    "json_schema_2020_12_tool": lambda _: content(text("ok")),
}

TOOL_ITEMS = [
    {
        "name": name,
        "description": "A fixture of the conformance suite.",
        "inputSchema": SCHEMA_2020_12 if name == "json_schema_2020_12_tool" else _ANY,
    }
    for name in TOOLS
]


def _say(*blocks):
    return {"messages": [{"role": "user", "content": block} for block in blocks]}


_CONTEXT = {"user_context": elicitation("What context should the prompt use?", context={"type": "string"})}

PROMPTS = {
    "test_simple_prompt": ((), lambda _: _say(text("This is a simple prompt for testing."))),
    "test_prompt_with_arguments": (("arg1", "arg2"), lambda visit: _say(text(f"Prompt with {visit.arguments}"))),
    "test_prompt_with_embedded_resource": (
        ("resourceUri",),
        lambda visit: _say(resource(visit.arguments.get("resourceUri"), "text/plain", "Embedded."), text("Read it.")),
    ),
    "test_prompt_with_image": ((), lambda _: _say(IMAGE, text("Look at it."))),
    "test_input_required_result_prompt": (
        (),
        lambda visit: ask(_CONTEXT) if answers(visit, _CONTEXT) is None else _say(text("With context.")),
    ),
}
PROMPT_ITEMS = [
    {
        "name": name,
        "description": "A fixture.",
        "arguments": [{"name": argument, "required": True} for argument in needed],
    }
    for name, (needed, _) in PROMPTS.items()
]

RESOURCES = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": IMAGE["data"]},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Watched."},
}
RESOURCE_ITEMS = [{"uri": uri, "name": uri.removeprefix("test://")} for uri in RESOURCES]
TEMPLATE_ITEMS = [{"uriTemplate": "test://template/{id}/data", "name": "template"}]


def read_resource(uri):
    if uri in RESOURCES:
        return {"contents": [{"uri": uri, **RESOURCES[uri]}]}
    if uri.startswith("test://template/") and uri.endswith("/data"):
        number = uri.removeprefix("test://template/").removesuffix("/data")
        body = json.dumps({"id": number, "templateTest": True})
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": body}]}
    raise RefusalError(INVALID_PARAMS, "Resource not found", {"uri": uri})
