// Evaluates FEEL with feelin: a line of JSON in, a line of JSON out, in the same order.
//
//   in   {"text": "a + 1", "context": {"a": 1}}            an expression
//        {"text": "< 5", "context": {}, "value": 3}        unary tests of a value
//        {"measure": true, "text": …, "context": …}        microseconds of one evaluation, and of parsing alone
//   out  {"value": …, "warnings": 0}, {"error": "…"} or {"evaluate": 12.5, "parse": 10.1}
//
// What JSON lacks is an object with one key that names the kind: {"__date__": "2024-02-29"}.

import { createInterface } from 'node:readline';
import {
  FeelDate, FeelDateTime, FeelDuration, FeelFunction, FeelRange, FeelTime, evaluate, parseExpression, unaryTest
} from 'feelin';

const SECONDS = 0.3;
const ROUNDS = 3;

function tag(value) {
  if (value === null || value === undefined) return null;
  if (typeof value === 'number') return { __number__: String(value) };
  if (typeof value === 'function' || value instanceof FeelFunction) return { __function__: '' };
  if (value instanceof FeelDate) return { __date__: value.toString() };
  if (value instanceof FeelTime) return { __time__: value.toString() };
  if (value instanceof FeelDateTime) return { __dateTime__: value.toString() };
  if (value instanceof FeelDuration) return { __duration__: value.toString() };
  if (value instanceof FeelRange) return { __range__: value.toString() };
  if (Array.isArray(value)) return value.map(tag);
  if (typeof value === 'object') {
    return { __context__: Object.fromEntries(Object.entries(value).map(([ name, entry ]) => [ name, tag(entry) ])) };
  }
  return value;
}

function answer({ text, context, value, measure }) {
  if (measure) {
    return { evaluate: time(() => evaluate(text, context)), parse: time(() => parseExpression(text, context, undefined)) };
  }
  const found = value === undefined ? evaluate(text, context) : unaryTest(text, { ...context, '?': value });
  return { value: tag(found.value), warnings: found.warnings.length };
}

// The best of some rounds, each long enough for the compiler to have done its work before it ends.
function time(work) {
  let best = Infinity;
  for (let round = 0; round < ROUNDS; round++) {
    const begin = process.hrtime.bigint();
    let times = 0;
    let elapsed = 0;
    do {
      for (let i = 0; i < 100; i++) work();
      times += 100;
      elapsed = Number(process.hrtime.bigint() - begin) / 1e3;
    } while (elapsed < SECONDS * 1e6);
    best = Math.min(best, elapsed / times);
  }
  return best;
}

for await (const line of createInterface({ input: process.stdin })) {
  let answered;
  try {
    answered = answer(JSON.parse(line));
  } catch (error) {
    answered = { error: `${error.name}: ${error.message}` };
  }
  process.stdout.write(`${JSON.stringify(answered)}\n`);
}
