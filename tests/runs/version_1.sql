-- A store as version 1 wrote it: neither command nor seed had a column, kinds had no index.
CREATE TABLE headwise_schema (version INTEGER NOT NULL);
INSERT INTO headwise_schema VALUES (1);
CREATE TABLE headwise_results (
    key VARCHAR(40) NOT NULL PRIMARY KEY,
    kind VARCHAR NOT NULL,
    revision INTEGER NOT NULL,
    spec TEXT NOT NULL,
    rows TEXT,
    failure TEXT,
    code VARCHAR NOT NULL,
    torch VARCHAR NOT NULL,
    device VARCHAR NOT NULL,
    dtype VARCHAR,
    seconds FLOAT NOT NULL
);
INSERT INTO headwise_results VALUES (
    'KEY_OF_CUBE', 'cube', 2,
    '{"kind":"cube","revision":2,"number":0.1,"seed":7,"dtype":"float64","tags":[]}',
    '[{"cube":0.0010000000000000002}]', NULL,
    '0.1.0', '2.13.0', 'cpu', 'float64', 0.25
);
INSERT INTO headwise_results VALUES (
    'KEY_OF_POISON', 'poison', 1,
    '{"kind":"poison","revision":1,"how":"raises"}',
    NULL, 'RuntimeError: this spec is poison',
    '0.1.0', '2.13.0', 'cpu', NULL, 0.5
);
