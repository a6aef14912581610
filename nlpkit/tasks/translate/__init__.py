"""One sequence into another: translation, pronunciation, inflection."""
