"""Where the replies of a policy in training are sampled: in the trainer's process, or by vLLM.

With a vLLM server TRL carries the new weights there before each batch; the requests are ours. The
weights travel from the first process's GPU, so no run of this kind was ever made on a CPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Literal, cast

import torch

from mimesim.config.ranges import COUNT, POSITIVE, check_ranges
from mimesim.errors import ConfigError, EnvironmentFault, MissingExtraError
from mimesim.models.base import ServedTokens
from mimesim.models.endpoint import redact
from mimesim.models.load import make_token_model
from mimesim.train import launch

_KEYLESS = {"api_key_env": ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerConfig:
    """Who samples the replies.

    Attributes:
        kind: `local` = the model itself, in lock-step batches; `vllm` = a server.
        base_url: of the server, with `/v1`.
        model: the name it serves the policy by.
        group_port: a free port for the transfer of the weights.
        start_s: how long the trainer waits for the server to come up for that transfer.
        options: of the endpoint (`models.endpoint.EndpointOptions`); it has no key by default.
    """

    kind: Literal["local", "vllm"] = "local"
    base_url: str = ""
    model: str = ""
    group_port: int = 51216
    start_s: float = 240.0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a server that is not named, or one that would not be asked.

        Raises:
            ConfigError: naming the key.
        """
        check_ranges(self, COUNT, "group_port")
        check_ranges(self, POSITIVE, "start_s")
        for key, value in (("base_url", self.base_url), ("model", self.model)):
            if self.served and not value:
                raise ConfigError(f"'{key}' is missing", expected="a vLLM server and its model")
            if not self.served and value:
                raise ConfigError(f"'{key}' names a server that nobody asks", mend="kind = 'vllm'")

    @property
    def served(self) -> bool:
        """Whether a server samples."""
        return self.kind == "vllm"

    @property
    def root(self) -> str:
        """The server's address without `/v1`: there the weights arrive."""
        return self.base_url.rstrip("/").removesuffix("/v1")

    def arguments(self) -> dict[str, Any]:
        """Return what TRL is told of it; without a server nothing."""
        if not self.served:
            return {}
        return {
            "use_vllm": True,
            "vllm_mode": "server",
            "vllm_server_base_url": self.root,
            "vllm_server_timeout": self.start_s,
            "vllm_group_port": self.group_port,
            # Over a whole conversation the ratio leaves any range: one token at a time.
            "vllm_importance_sampling_mode": "token_truncate",
        }

    def check_here(self) -> None:
        """Refuse surroundings in which no weights can be sent to a server.

        Raises:
            MissingExtraError: vLLM is not installed.
            EnvironmentFault: this process has no GPU.
        """
        if not self.served:
            return
        if find_spec("vllm") is None:
            raise MissingExtraError.for_extra("sampler 'vllm'", "vllm")
        if not torch.cuda.is_available():
            raise EnvironmentFault(
                "the weights travel to the vLLM server from a GPU, and there is none here",
                where="sampler.kind",
                expected="a GPU for the trainer beside that of the server",
                mend="sampler.kind = 'local' trains without a server",
            )

    def make(self, tokenizer: Any) -> ServedTokens | None:
        """Return the client of the server; None where the model samples itself.

        Raises:
            UsageError: a malformed address.
            ConfigError: an option that no endpoint has.
        """
        if not self.served:
            return None
        options = {**_KEYLESS, **self.options, "tokenizer": tokenizer}
        name = f"openai:{self.model}@{self.base_url}"
        return cast(ServedTokens, make_token_model(name, options=options))


def check_sampler(sampler: SamplerConfig, device: str) -> None:
    """Refuse a server without a device that the weights could come from.

    Raises:
        ConfigError: so it is.
    """
    if sampler.served and device == "cpu":
        raise ConfigError(
            "'sampler.kind' is 'vllm', and 'launch.device' is 'cpu'",
            expected="launch.device = 'auto': the weights travel from a GPU",
        )


class Delivery:
    """Takes the place of a trainer's `vllm_generation`: brings the weights, or says why it cannot.

    A run whose server is gone ends with a checkpoint, so the same command goes on from there.

    Args:
        trainer: a `GRPOTrainer` that uses a vLLM server.
        sampler: how it is reached.
    """

    def __init__(self, trainer: Any, sampler: SamplerConfig) -> None:
        self._trainer = trainer
        self._inner = trainer.vllm_generation
        self._where = redact(sampler.base_url)

    def sync_weights(self) -> None:
        """Bring the weights to the server; all processes must ask.

        Raises:
            EnvironmentFault: it did not take them; the run can go on from a checkpoint.
        """
        trouble = ""
        try:
            self._inner.sync_weights()
        except Exception as error:  # noqa: BLE001 - requests, NCCL and TRL each raise their own
            trouble = str(error).strip().partition("\n")[0] or type(error).__name__
        told = next((words for words in launch.shared(trouble) if words), "")
        if told:
            self._save()
            raise EnvironmentFault(
                f"the policy server did not take the new weights: {redact(told)}",
                where=self._where,
                mend="start the server again; the same command goes on",
            )

    def bring(self) -> None:
        """Bring the weights unless the server has those of this step already."""
        if self._trainer.state.global_step != self._trainer._last_loaded_step:
            self.sync_weights()
            self._trainer._last_loaded_step = self._trainer.state.global_step
        launch.wait()

    def _save(self) -> None:
        """Write a checkpoint of what was learnt before."""
        trainer = self._trainer
        if trainer.state.global_step == 0:
            return
        trainer._save_checkpoint(trainer.model, None)
        trainer.callback_handler.on_save(trainer.args, trainer.state, trainer.control)
