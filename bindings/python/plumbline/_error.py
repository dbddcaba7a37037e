"""The one exception of the library."""


class Error(ValueError):
    """Input that cannot be right. The text is the command line's; its parts are

    where     the tensor or option,
    found     what was found there,
    expected  what was expected.
    """

    where: str = ""
    found: str = ""
    expected: str = ""

    @classmethod
    def of(cls, where: str, found: str, expected: str) -> "Error":
        error = cls(f"{where}: found {found}, expected {expected}")
        error.where, error.found, error.expected = where, found, expected
        return error
