-- Questions to nodes that have the code of an execution; see `queries.sql` for how statements are written.

-- === questions ==========================================================================================================

-- name: put_question
INSERT INTO questions (id, org, execution_id, body, expires_at)
VALUES (?, ?, ?, ?, ?);

-- name: list_questions
-- A question about an execution that is gone is for every node: no workflow is found for it.
SELECT asked.id, asked.org, asked.execution_id, asked.body, asked.expires_at
FROM questions AS asked
WHERE asked.answer IS NULL AND asked.expires_at > ? AND asked.taken_until <= ? AND asked.tries < ?
  AND asked.expires_at >= ? AND (asked.expires_at, asked.id) > (?, ?)
  AND coalesce(
      (SELECT found.workflow IN (SELECT value FROM json_each(?))
       FROM executions AS found
       WHERE found.org = asked.org AND found.execution_id = asked.execution_id),
      1)
ORDER BY asked.expires_at, asked.id
LIMIT ?;

-- name: take_questions
UPDATE questions
SET taken_until = ?, tries = tries + 1
WHERE id IN (SELECT value FROM json_each(?)) AND answer IS NULL AND expires_at > ? AND taken_until <= ? AND tries < ?
RETURNING id;

-- name: answer_question
UPDATE questions SET answer = ? WHERE id = ? AND answer IS NULL;

-- name: read_answers
SELECT id, org, answer FROM questions WHERE id IN (SELECT value FROM json_each(?)) AND answer IS NOT NULL;

-- name: remove_questions
DELETE FROM questions WHERE id IN (SELECT value FROM json_each(?));

-- name: remove_expired_questions
DELETE FROM questions WHERE expires_at <= ?;
