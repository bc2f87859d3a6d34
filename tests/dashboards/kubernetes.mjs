// SPDX-License-Identifier: Apache-2.0
// Reads a JSON array of Kubernetes objects on standard input and validates each against the schema
// of its kind; prints what is wrong as a JSON array of sentences.
import { readFileSync } from "node:fs";
import { DaemonSet } from "kubernetes-models/apps/v1";
import { Namespace, Service, ServiceAccount } from "kubernetes-models/v1";
import {
  PodMonitor,
  PrometheusRule,
  ServiceMonitor,
} from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1";

const KINDS = {
  DaemonSet, Namespace, PodMonitor, PrometheusRule, Service, ServiceAccount, ServiceMonitor,
};

function faults(object) {
  const Kind = KINDS[object.kind];
  if (!Kind) return [`no schema for kind ${object.kind}`];
  if (Kind.apiVersion && Kind.apiVersion !== object.apiVersion)
    return [`${object.kind} is ${Kind.apiVersion}, not ${object.apiVersion}`];
  try {
    new Kind(object).validate();
    return [];
  } catch (error) {
    return [`${object.kind} ${object.metadata?.name}: ${error.message}`];
  }
}

console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf-8")).flatMap(faults)));
