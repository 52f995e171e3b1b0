"""Projects and conversations."""

import msgspec
from litestar import delete, get, patch, post
from litestar.params import FromPath, JSONBody
from litestar.status_codes import HTTP_201_CREATED, HTTP_204_NO_CONTENT

from factwire.edge.operations import thread_operations
from factwire.edge.routes.api_types import ConversationBody, MemberBody, ProjectBody, ProjectChange
from factwire.edge.routes.request_context import EdgeRequest, edge_of, new_id, person_of
from factwire.facts.resources import Conversation, Page, Project
from factwire.serving.paging import DEFAULT_LIMIT, After, Limit, build_page
from factwire.serving.rest import trace_of


@get("/v1/projects", tags=["projects"])
async def list_projects(
    request: EdgeRequest, after: After = None, limit: Limit = DEFAULT_LIMIT
) -> Page[Project]:
    """List projects, newest first."""
    edge = edge_of(request)
    return build_page(edge.cursor, edge.records.projects, after, limit)


@post("/v1/projects", status_code=HTTP_201_CREATED, tags=["projects"])
async def create_project(request: EdgeRequest, data: JSONBody[ProjectBody]) -> Project:
    """Create a project; its folder must be in an allowed workspace."""
    project_id = new_id(request, "prj")
    return await thread_operations.add_project(
        edge_of(request),
        project_id,
        data.name,
        data.work_dir,
        by=person_of(request),
        trace_id=trace_of(request),
    )


@get("/v1/projects/{project_id:str}", tags=["projects"])
async def read_project(request: EdgeRequest, project_id: FromPath[str]) -> Project:
    """Get a project."""
    return thread_operations.find_project(edge_of(request), project_id)


@patch("/v1/projects/{project_id:str}", tags=["projects"])
async def change_project(
    request: EdgeRequest, project_id: FromPath[str], data: JSONBody[ProjectChange]
) -> Project:
    """Rename a project or change its folder."""
    fields = {"name": data.name, "workDir": data.work_dir}
    changes = {name: value for name, value in fields.items() if value is not msgspec.UNSET}
    return await thread_operations.update_project(
        edge_of(request), project_id, changes, by=person_of(request), trace_id=trace_of(request)
    )


@delete("/v1/projects/{project_id:str}", status_code=HTTP_204_NO_CONTENT, tags=["projects"])
async def delete_project(request: EdgeRequest, project_id: FromPath[str]) -> None:
    """Remove a project; refused while it has active threads."""
    await thread_operations.remove_project(
        edge_of(request), project_id, by=person_of(request), trace_id=trace_of(request)
    )


@get("/v1/conversations", tags=["conversations"])
async def list_conversations(
    request: EdgeRequest, after: After = None, limit: Limit = DEFAULT_LIMIT
) -> Page[Conversation]:
    """List conversations, newest first."""
    edge = edge_of(request)
    return build_page(edge.cursor, edge.records.conversations, after, limit)


@post("/v1/conversations", status_code=HTTP_201_CREATED, tags=["conversations"])
async def create_conversation(
    request: EdgeRequest, data: JSONBody[ConversationBody]
) -> Conversation:
    """Create a conversation, which can have threads and members."""
    conversation_id = new_id(request, "cnv")
    return await thread_operations.add_conversation(
        edge_of(request),
        conversation_id,
        data.title,
        data.project_id,
        by=person_of(request),
        trace_id=trace_of(request),
    )


@get("/v1/conversations/{conversation_id:str}", tags=["conversations"])
async def read_conversation(request: EdgeRequest, conversation_id: FromPath[str]) -> Conversation:
    """Get a conversation and its members."""
    return thread_operations.find_conversation(edge_of(request), conversation_id)


@post(
    "/v1/conversations/{conversation_id:str}/members",
    status_code=HTTP_201_CREATED,
    tags=["conversations"],
)
async def add_member(
    request: EdgeRequest, conversation_id: FromPath[str], data: JSONBody[MemberBody]
) -> Conversation:
    """Add a member to a conversation."""
    edge = edge_of(request)
    row = thread_operations.find_conversation(edge, conversation_id)
    if row.members.get(data.member_id) == data.member_type:
        return row
    return await thread_operations.add_conversation_member(
        edge,
        conversation_id,
        data.member_id,
        data.member_type,
        by=person_of(request),
        trace_id=trace_of(request),
    )


ROUTES = [
    list_projects,
    create_project,
    read_project,
    change_project,
    delete_project,
    list_conversations,
    create_conversation,
    read_conversation,
    add_member,
]
