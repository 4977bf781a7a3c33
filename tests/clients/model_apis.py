"""The APIs of four vendors, as far as a scripted model needs them: requests read, answers as server-sent events."""

import json
from abc import ABC, abstractmethod

EVENTS = "text/event-stream"


def event(body, name=None):
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(body)}\n\n".encode()


def flatten(content):
    """The text of a content that is a string, or a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else part.get("text", "") for part in content or ())


class Api(ABC):
    """Reads a request of one API, and encodes the model's next step: a text, or the name and arguments of a call."""

    @abstractmethod
    def serves(self, path): ...

    @abstractmethod
    def tools(self, body): ...

    @abstractmethod
    def last_result(self, body): ...

    @abstractmethod
    def encode(self, path, body, step, number): ...


class Messages(Api):
    """Anthropic's messages."""

    def serves(self, path):
        return path.endswith(("/v1/messages", "/v1/messages/count_tokens"))

    def tools(self, body):
        return frozenset(tool["name"] for tool in body.get("tools") or ())

    def last_result(self, body):
        parts = [part for message in body["messages"] for part in message["content"] if isinstance(part, dict)]
        results = [part for part in parts if part.get("type") == "tool_result"]
        return flatten(results[-1].get("content")) if results else ""

    def encode(self, path, body, step, number):
        if path.endswith("count_tokens"):
            return "application/json", b'{"input_tokens": 10}'
        block, delta = self._block(step, number)
        usage = {"input_tokens": 10, "output_tokens": 10}
        started = {"id": f"msg_{number}", "type": "message", "role": "assistant", "content": [], "usage": usage}
        stop = {"stop_reason": "end_turn" if isinstance(step, str) else "tool_use", "stop_sequence": None}
        events = [
            {"type": "message_start", "message": {**started, "model": body.get("model"), "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": stop, "usage": usage},
            {"type": "message_stop"},
        ]
        if not body.get("stream"):
            content = [block | ({"text": step} if isinstance(step, str) else {"input": step[1]})]
            return "application/json", json.dumps({**started, **stop, "model": "m", "content": content}).encode()
        return EVENTS, b"".join(event(each, each["type"]) for each in events)

    @staticmethod
    def _block(step, number):
        if isinstance(step, str):
            return {"type": "text", "text": ""}, {"type": "text_delta", "text": step}
        name, arguments = step
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
        return block, {"type": "input_json_delta", "partial_json": json.dumps(arguments)}


class Responses(Api):
    """OpenAI's responses. Tools in a namespace are called by both names; a search for tools is a call, too."""

    def serves(self, path):
        return path.endswith("/v1/responses")

    def tools(self, body):
        found = [tool for item in body["input"] for tool in item.get("tools") or ()]
        names = set()
        for tool in [*(body.get("tools") or ()), *found]:
            inner = tool.get("tools") or ()
            names.update(f"{tool['name']}.{each['name']}" for each in inner if each.get("name"))
            names.add(tool.get("name") or tool.get("type"))
        return frozenset(names)

    def last_result(self, body):
        outputs = [item for item in body["input"] if item.get("type", "").endswith("_output")]
        return flatten(outputs[-1].get("output", "")) if outputs else ""

    def encode(self, path, body, step, number):
        response = {"id": f"resp_{number}", "object": "response", "status": "completed", "output": []}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        events = [
            {"type": "response.created", "response": {**response, "status": "in_progress"}},
            {"type": "response.output_item.done", "output_index": 0, "item": self._item(step, number)},
            {"type": "response.completed", "response": {**response, "usage": usage}},
        ]
        return EVENTS, b"".join(event(each, each["type"]) for each in events)

    @staticmethod
    def _item(step, number):
        if isinstance(step, str):
            text = {"type": "output_text", "text": step, "annotations": []}
            return {
                "type": "message",
                "id": f"m{number}",
                "role": "assistant",
                "status": "completed",
                "content": [text],
            }
        name, arguments = step
        made = {"id": f"f{number}", "call_id": f"call_{number}", "status": "completed"}
        if name == "tool_search":
            return {**made, "type": "tool_search_call", "execution": "client", "arguments": arguments}
        if name == "apply_patch":
            return {**made, "type": "custom_tool_call", "name": name, "input": arguments["input"]}
        namespace, _, inner = name.rpartition(".")
        spelled = {"name": inner, "arguments": json.dumps(arguments)}
        return {**made, "type": "function_call", **spelled, **({"namespace": namespace} if namespace else {})}


class Generate(Api):
    """Google's generateContent."""

    def serves(self, path):
        return path.endswith((":generateContent", ":streamGenerateContent", ":countTokens"))

    def tools(self, body):
        return frozenset(
            each["name"] for tool in body.get("tools") or () for each in tool.get("functionDeclarations") or ()
        )

    def last_result(self, body):
        parts = [part["functionResponse"] for part in body["contents"][-1]["parts"] if "functionResponse" in part]
        if not parts:
            return ""
        response = parts[-1].get("response", {})
        return flatten(response.get("output", response.get("error", "")))

    def encode(self, path, body, step, number):
        if path.endswith(":countTokens"):
            return "application/json", b'{"totalTokens": 10}'
        schema = body.get("generationConfig", {}).get("responseJsonSchema")
        if schema:  # the client asks for its own ends, such as whether the conversation is stuck
            step = json.dumps({name: self._least(each) for name, each in schema["properties"].items()})
        part = {"text": step} if isinstance(step, str) else {"functionCall": {"name": step[0], "args": step[1]}}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        answer = {"candidates": [candidate], "usageMetadata": {"totalTokenCount": 2}}
        if path.endswith(":generateContent"):
            return "application/json", json.dumps(answer).encode()
        return EVENTS, event(answer)

    @staticmethod
    def _least(schema):
        return {"number": 0, "integer": 0, "boolean": False}.get(schema["type"], "none")


class Chat(Api):
    """OpenAI's chat completions, as compatible servers offer them."""

    def serves(self, path):
        return path.endswith("/v1/chat/completions")

    def tools(self, body):
        return frozenset(tool["function"]["name"] for tool in body.get("tools") or ())

    def last_result(self, body):
        last = body["messages"][-1]
        return flatten(last["content"]) if last["role"] == "tool" else ""

    def encode(self, path, body, step, number):
        if isinstance(step, str):
            delta, reason = {"role": "assistant", "content": step}, "stop"
        else:
            spelled = {"name": step[0], "arguments": json.dumps(step[1])}
            call = {"index": 0, "id": f"call_{number}", "type": "function", "function": spelled}
            delta, reason = {"role": "assistant", "tool_calls": [call]}, "tool_calls"
        base = {"id": f"chat_{number}", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
        chunks = [
            {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        ]
        return EVENTS, b"".join(map(event, chunks)) + b"data: [DONE]\n\n"


APIS = (Messages(), Responses(), Generate(), Chat())
