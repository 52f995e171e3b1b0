"""Projects and conversations."""

from factwire.client.address import path_of, query_of
from factwire.client.call import Call, delete, get, given, json, nothing, patch, post
from factwire.client.resources import Conversation, Page, Project


def projects(*, cursor: str | None = None, limit: int | None = None) -> Call[Page[Project]]:
    """Projects, newest first."""
    return get(path_of("projects"), json(Page[Project]), query_of(cursor=cursor, limit=limit))


def create_project(name: str, *, work_dir: str | None = None) -> Call[Project]:
    """Make a project; its folder must lie in a workspace of the Edge."""
    return post(path_of("projects"), json(Project), given(name=name, workDir=work_dir))


def project(project_id: str) -> Call[Project]:
    """One project."""
    return get(path_of("projects", project_id), json(Project))


def change_project(
    project_id: str, *, name: str | None = None, work_dir: str | None = None
) -> Call[Project]:
    """Rename a project, or give it another folder."""
    body = given(name=name, workDir=work_dir)
    return patch(path_of("projects", project_id), json(Project), body)


def delete_project(project_id: str) -> Call[None]:
    """Take a project off the list."""
    return delete(path_of("projects", project_id), nothing)


def conversations(
    *, cursor: str | None = None, limit: int | None = None
) -> Call[Page[Conversation]]:
    """Conversations, newest first."""
    return get(
        path_of("conversations"), json(Page[Conversation]), query_of(cursor=cursor, limit=limit)
    )


def create_conversation(
    *, title: str | None = None, project_id: str | None = None
) -> Call[Conversation]:
    """Make a conversation, to which threads and members can belong."""
    body = given(title=title, projectId=project_id)
    return post(path_of("conversations"), json(Conversation), body)


def add_member(conversation_id: str, member_id: str, member_type: str) -> Call[Conversation]:
    """Add a member to a conversation."""
    body = given(memberId=member_id, memberType=member_type)
    return post(path_of("conversations", conversation_id, "members"), json(Conversation), body)
