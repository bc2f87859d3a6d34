// SPDX-License-Identifier: Apache-2.0
// Reads a JSON array of PromQL expressions on standard input; prints, as a JSON array, those that
// Prometheus' own grammar cannot parse.
import { readFileSync } from "node:fs";
import { parser } from "@prometheus-io/lezer-promql";

function isWrong(expression) {
  let wrong = false;
  parser.parse(expression).iterate({ enter: (node) => void (wrong ||= node.type.isError) });
  return wrong;
}

const expressions = JSON.parse(readFileSync(0, "utf-8"));
console.log(JSON.stringify(expressions.filter(isWrong)));
