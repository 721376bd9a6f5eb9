"""A parameter that is a secret: its mark for clients, and messages that do not have its value."""

import json
from typing import Annotated, Any, Literal

import pydantic
import pytest
from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    SecretBytes,
    SecretStr,
    field_validator,
    model_validator,
)

import mcp_notebook
from mcp_notebook import Secret
from mcp_notebook.errors import DefinitionError, InvalidArguments
from mcp_notebook.kernel.schemas.by_hand.author_schema import read_author_schema
from mcp_notebook.kernel.schemas.output.output_schema import make_output_schema
from mcp_notebook.kernel.schemas.parameters.markers import Header
from mcp_notebook.kernel.schemas.parameters.signature_to_schema import read_function_schema
from mcp_notebook.kernel.schemas.schema_cache import SchemaCache
from mcp_notebook.kernel.schemas.secrets import list_secrets, scrub
from mcp_notebook.text.redaction import MASK

SECRET = "hunter2-tr0ub4dor"
TEXT = {"type": "string", "format": "password", "writeOnly": True}


REFUSED = (
    f"value: got {{'password': '{MASK}', 'user': 'nobody'}} (object); "
    f"nobody has the password {MASK}."
)
OF_BOTH = (
    "value.user: got 7 (integer); allowed: string of at least 2 characters.\n"
    f"value: got {{'password': '{MASK}', 'user': 7}} (object); Input should be a valid integer."
)


class Login(BaseModel):
    user: Annotated[str, Field(min_length=2)]
    password: SecretStr

    @model_validator(mode="after")
    def check(self):
        if self.user == "nobody":
            raise ValueError(f"nobody has the password {self.password.get_secret_value()}")
        return self


class Account(BaseModel):
    login: Login
    notes: list[str] = []


def refuse_text(value: str) -> str:
    raise ValueError(f"{value} is in a list of passwords")


def fail(value: str) -> str:
    raise RuntimeError(f"no database, looked for {value}")


class Pin(BaseModel):
    pin: Secret[int]

    @field_validator("pin")
    @classmethod
    def check(cls, value):
        assert value.get_secret_value() > 10**6, f"{value.get_secret_value()} is too short"
        return value


def schema_of(hint, default=...):
    def with_default(value: hint = default, size: int = 1):
        """Do."""

    def without(value: hint, size: int = 1):
        """Do."""

    return read_function_schema(without if default is ... else with_default)


def test_it_is_pydantics_own():
    assert mcp_notebook.Secret is pydantic.Secret


@pytest.mark.parametrize(
    ("hint", "published"),
    [
        (SecretStr, TEXT),
        (Secret[str], TEXT),
        (SecretBytes, TEXT | {"contentEncoding": "base64"}),
        (Secret[int], {"type": "integer", "writeOnly": True}),
        (Secret[Literal["a", "b"]], TEXT | {"enum": ["a", "b"]}),
        (Secret[str] | None, {"anyOf": [TEXT, {"type": "null"}]}),
        (list[Secret[str]], {"type": "array", "items": TEXT}),
        (dict[str, SecretStr], {"type": "object", "additionalProperties": TEXT}),
        (Annotated[Secret[str], Field(description="A key.")], TEXT | {"description": "A key."}),
    ],
)
def test_clients_are_told_that_a_parameter_is_a_secret(hint, published):
    assert schema_of(hint).input_schema["properties"]["value"] == published


def test_a_secret_within_a_model_has_its_mark_too():
    class Keys(BaseModel):
        api: Secret[str]
        pins: Secret[list[int]]

    keys = schema_of(Keys).input_schema["properties"]["value"]["properties"]
    assert keys["api"] == TEXT
    assert keys["pins"] == {"type": "array", "items": {"type": "integer"}, "writeOnly": True}
    flat = read_function_schema(lambda keys: keys, flatten=False)
    assert "writeOnly" not in json.dumps(flat.input_schema)


@pytest.mark.parametrize(
    ("hint", "sent"),
    [(SecretStr, "x"), (Secret[str], "x"), (Secret[int], 5), (Secret[Login], None)],
)
def test_the_function_gets_the_secret_by_one_method(hint, sent):
    sent = sent or {"user": "ann", "password": SECRET}
    value = schema_of(hint).validate({"value": sent})["value"]
    assert SECRET not in repr(value)
    secret = value.get_secret_value()
    if hint == Secret[Login]:
        assert secret.password.get_secret_value() == SECRET
    else:
        assert secret == sent


@pytest.mark.parametrize(
    ("hint", "default"),
    [
        (SecretStr, SecretStr(SECRET)),
        (SecretStr, SECRET),
        (Secret[str], Secret(SECRET)),
        (list[SecretStr], [SecretStr(SECRET)]),
        (Login, Login(user="ann", password=SECRET)),
        (Account, Account(login=Login(user="ann", password=SECRET))),
        (dict[str, Login], {"a": Login(user="ann", password=SECRET)}),
    ],
)
def test_a_default_that_is_or_holds_a_secret_is_not_published(hint, default, tmp_path):
    schema = schema_of(hint, default)
    published = schema.input_schema["properties"]
    assert "default" not in published["value"]
    assert published["size"] == {"type": "integer", "default": 1}
    assert SECRET not in json.dumps(schema.input_schema)
    assert schema.validate({})["value"] is default


def test_the_default_of_a_parameter_called_default_is_not_a_keyword():
    def take(default: SecretStr, items: Login): ...

    assert list(read_function_schema(take).input_schema["properties"]) == ["default", "items"]


@pytest.mark.parametrize(
    ("hint", "sent", "message"),
    [
        (Secret[int], SECRET, f"value: got {MASK} (string); allowed: integer."),
        (SecretStr, [SECRET], f"value: got {MASK} (array); allowed: secret text."),
        (SecretBytes, f"{SECRET}!", f"value: got {MASK} (string); allowed: bytes as base64 text."),
        (
            Secret[Annotated[str, Field(max_length=3)]],
            SECRET,
            f"value: got {MASK} (string); allowed: secret text of at most 3 characters.",
        ),
        (
            Secret[Literal["a", "b"]],
            SECRET,
            f"value: got {MASK} (string); allowed: 'a' | 'b'.",
        ),
        (
            Secret[Annotated[str, AfterValidator(refuse_text)]],
            "abc",
            f"value: got {MASK} (string); a validator refuses it.",
        ),
        (
            Annotated[SecretStr, AfterValidator(lambda it: refuse_text(it.get_secret_value()))],
            "abc",
            f"value: got {MASK} (string); a validator refuses it.",
        ),
        (
            Secret[Annotated[str, AfterValidator(fail)]],
            SECRET,
            f"value: refused by a validator: RuntimeError: no database, looked for {MASK}.",
        ),
        (
            Login,
            {"user": "a", "password": SECRET},
            "value.user: got 'a' (string); allowed: string of at least 2 characters.",
        ),
        (
            Login,
            {"user": "ann", "pass": SECRET},
            (
                "value.password: missing; allowed: secret text.\n"
                "value.pass: no such parameter; did you mean 'password'?"
            ),
        ),
        (Login, f"{SECRET} [", f"value: got {MASK} (string); allowed: object with user, password."),
        (
            Login,
            {"user": "nobody", "password": SECRET},
            REFUSED,
        ),
        (
            Login,
            json.dumps({"user": "nobody", "password": SECRET}),
            REFUSED,
        ),
        (
            Account,
            {"login": {"user": "ann", "password": SECRET}, "notes": 5},
            "value.notes: got 5 (integer); allowed: array of string.",
        ),
        (
            Account,
            {"login": [{"user": "ann", "password": SECRET}]},
            f"value.login: got ['{MASK}'] (array); allowed: object with user, password.",
        ),
        (Pin, {"pin": 4711}, f"value.pin: got {MASK} (integer); a validator refuses it."),
        (
            Login | int,
            {"user": 7, "password": SECRET},
            OF_BOTH,
        ),
    ],
)
def test_a_refusal_names_the_place_and_not_the_secret(hint, sent, message):
    with pytest.raises(InvalidArguments) as caught:
        schema_of(hint).validate({"value": sent})
    assert SECRET not in str(caught.value)
    assert str(caught.value) == message


def test_a_secret_under_a_misspelled_name_is_not_repeated():
    with pytest.raises(InvalidArguments) as caught:
        schema_of(SecretStr).validate({"valeu": SECRET, "size": "x"})
    assert SECRET not in str(caught.value)


def test_a_wrong_value_beside_a_secret_is_told_as_ever():
    with pytest.raises(InvalidArguments, match="size: got 'many'"):
        schema_of(SecretStr).validate({"value": SECRET, "size": "many"})


@pytest.mark.parametrize(
    "part",
    [
        TEXT | {"maxLength": 3},
        TEXT | {"pattern": "^x"},
        TEXT | {"enum": ["x"]},
        TEXT | {"not": {"type": "string"}},
        {"anyOf": [TEXT | {"maxLength": 3}, {"type": "integer"}]},
        {"oneOf": [TEXT, {"type": "string"}]},
        {"type": "object", "properties": {"key": TEXT}},
        {"type": "array", "items": TEXT},
        {"type": "array", "items": TEXT, "uniqueItems": True},
        {"type": "object", "propertyNames": TEXT | {"maxLength": 3}},
    ],
)
@pytest.mark.parametrize("sent", [SECRET, [SECRET, SECRET], {SECRET: 1}, {"key": [SECRET]}])
def test_by_an_authors_schema_a_secret_is_not_repeated_either(part, sent):
    root = {"type": "object", "properties": {"value": part}}
    schema = read_author_schema(lambda **values: values, root, "take")
    try:
        schema.validate({"value": sent})
    except InvalidArguments as error:
        assert SECRET not in str(error)  # noqa: PT017 - some of them are right


@pytest.mark.parametrize("default", [SECRET, SecretStr(SECRET), [SECRET]])
def test_a_default_that_is_refused_is_not_repeated(default):
    with pytest.raises(DefinitionError, match="the default of `value` is not what") as caught:
        schema_of(Secret[int], default)
    assert SECRET not in str(caught.value)


def test_a_secret_cannot_have_a_header():
    with pytest.raises(DefinitionError, match="is a secret and has the header 'Key'"):
        schema_of(Annotated[SecretStr, Header("Key")])


def test_a_secret_of_no_type_is_refused_with_the_way_to_write_it():
    with pytest.raises(DefinitionError, match=r"Secret\[<type>\]"):
        schema_of(Secret)


def test_no_default_that_is_a_secret_is_in_the_cache_of_schemas(tmp_path):
    def take(value: SecretStr = SECRET, login: dict[str, Any] = {"key": 1}): ...  # noqa: B006

    read_function_schema(take, cache=SchemaCache(tmp_path))
    assert all(SECRET not in path.read_text() for path in tmp_path.iterdir())


@pytest.mark.parametrize("hint", [SecretStr, Secret[str], Secret[int], SecretBytes])
def test_in_a_result_a_secret_is_asterisks_and_the_schema_says_text(hint):
    def give() -> hint: ...

    output = make_output_schema(give, "give", schema=True)
    assert output.schema["type"] == "string"


def test_what_a_tool_says_is_scrubbed_of_all_forms_of_a_secret():
    schema = schema_of(dict[str, Secret[str]]).input_schema
    odd = 'it\'s a/b & "ü"\nsecond line of the key'
    secrets = list_secrets(
        schema, {"value": {"a": SECRET, "b": odd, "c": "ab", "d": "aHVudGVyMg=="}}
    )
    said = (
        f"{SECRET} {odd!r} {json.dumps(odd)} ?key=it%27s%20a%2Fb%20%26%20%22%C3%BC%22%0Asecond"
        "%20line%20of%20the%20key hunter2 -- second line of the key"
    )
    assert scrub(said, secrets) == f"{MASK} '{MASK}' \"{MASK}\" ?key={MASK} {MASK} -- {MASK}"
    assert scrub("abab", secrets) == "abab"
