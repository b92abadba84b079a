from agents_admin.models.access import ApiKey
from agents_admin.models.agent import Agent, AgentMemory, AgentTool
from agents_admin.models.credential import Credential, CredentialOrigin
from agents_admin.models.delegation import Delegation
from agents_admin.models.memory import Chunk, Document, Memory
from agents_admin.models.provider import Model, Provider
from agents_admin.models.tool import Tool
from agents_admin.models.widget import Widget, WidgetOrigin

__all__ = [
    "Agent",
    "AgentMemory",
    "AgentTool",
    "ApiKey",
    "Chunk",
    "Credential",
    "CredentialOrigin",
    "Delegation",
    "Document",
    "Memory",
    "Model",
    "Provider",
    "Tool",
    "Widget",
    "WidgetOrigin",
]
