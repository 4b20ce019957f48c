"""The steps of an audit: functions from the target and the findings so far to new findings."""

__all__: list[str] = []
