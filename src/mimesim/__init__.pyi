from mimesim.api.results import Results as Results
from mimesim.api.simulate import asimulate as asimulate
from mimesim.api.simulate import simulate as simulate
from mimesim.envs.base import AgentEnd as AgentEnd

__version__: str
