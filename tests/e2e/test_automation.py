"""Schedules in the UI."""

from playwright.sync_api import expect

from .board import SECONDS, Board


def test_a_schedule_runs_at_once_and_one_that_is_turned_off_stays_off(board: Board) -> None:
    page = board.open(f"locations/{board.server.project.package}/schedules/morning_schedule")
    switch = page.locator("input[type=checkbox]").first
    expect(switch).to_be_checked(timeout=SECONDS * 1000)
    page.locator("label", has=switch).click()
    expect(switch).not_to_be_checked(timeout=SECONDS * 1000)
    board.server.reload()
    page.reload()
    board.shows("morning_schedule")
    expect(page.locator("input[type=checkbox]").first).not_to_be_checked(timeout=SECONDS * 1000)
    location = f'repositoryName: "__repository__", repositoryLocationName: "{board.server.project.package}"'
    states = "... on Schedules { results { name scheduleState { status } } }"
    found = board.server.query(f"{{ schedulesOrError(repositorySelector: {{{location}}}) {{ {states} }} }}")
    assert {each["name"]: each["scheduleState"]["status"] for each in found["schedulesOrError"]["results"]} == {
        "morning_schedule": "STOPPED",
        "minutely_schedule": "RUNNING",
    }
