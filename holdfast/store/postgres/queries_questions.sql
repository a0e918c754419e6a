-- Questions to nodes that have the code of an execution; see `queries.sql` for how statements are written.

-- === questions ==========================================================================================================

-- name: put_question
INSERT INTO holdfast.questions (id, org, execution_id, body, expires_at)
VALUES ($1, $2, $3, $4, $5);

-- name: list_questions
-- A question about an execution that is gone is for every node: no workflow is found for it.
SELECT asked.id, asked.org, asked.execution_id, asked.body, asked.expires_at
FROM holdfast.questions AS asked
WHERE asked.answer IS NULL AND asked.expires_at > $1 AND asked.taken_until <= $1 AND asked.tries < $2
  AND asked.expires_at >= $4 AND (asked.expires_at, asked.id) > ($4, $5)
  AND coalesce(
      (SELECT found.workflow = ANY ($3::text[])
       FROM holdfast.executions AS found
       WHERE found.execution_id = asked.execution_id AND (found.org = asked.org) IS TRUE),
      true)
ORDER BY asked.expires_at, asked.id
LIMIT $6;

-- name: take_questions
UPDATE holdfast.questions
SET taken_until = $3, tries = tries + 1
WHERE id = ANY ($1::text[]) AND answer IS NULL AND expires_at > $2 AND taken_until <= $2 AND tries < $4
RETURNING id;

-- name: answer_question
UPDATE holdfast.questions SET answer = $2 WHERE id = $1 AND answer IS NULL;

-- name: read_answers
SELECT id, org, answer FROM holdfast.questions WHERE id = ANY ($1::text[]) AND answer IS NOT NULL;

-- name: remove_questions
DELETE FROM holdfast.questions WHERE id = ANY ($1::text[]);

-- name: remove_expired_questions
DELETE FROM holdfast.questions WHERE expires_at <= $1;
