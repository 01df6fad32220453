PROMPT='%n@%m %~ %# '
