// SPDX-License-Identifier: Apache-2.0
// What a dashboard's JSON must be, by Grafana's own types. A file that this is compiled with holds
// a dashboard as a literal; see test_files.py.
import type {
  Dashboard,
  Panel,
  RowPanel,
} from "@grafana/schema";
import type * as Heatmap from "@grafana/schema/dist/esm/raw/composable/heatmap/panelcfg/x/HeatmapPanelCfg_types.gen";
import type * as Stat from "@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen";
import type * as Table from "@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen";
import type * as TimeSeries from "@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";

// In JSON a value of a string enumeration is just that string.
export type Json<T> = T extends string
  ? `${T}`
  : T extends (infer Item)[]
    ? Json<Item>[]
    : T extends object
      ? { [Key in keyof T]: Json<T[Key]> }
      : T;

type Strict<Kind extends string, Options, Custom> = Json<
  Omit<Panel, "type" | "options" | "fieldConfig">
> & {
  type: Kind;
  title: string;
  description: string;
  options: Partial<Json<Options>>;
  fieldConfig: {
    defaults: Json<NonNullable<Panel["fieldConfig"]>["defaults"]> & { custom?: Partial<Json<Custom>> };
    overrides: Json<NonNullable<Panel["fieldConfig"]>["overrides"]>;
  };
};

type AnyPanel =
  | Strict<"timeseries", TimeSeries.Options, TimeSeries.FieldConfig>
  | Strict<"table", Table.Options, Table.FieldConfig>
  | Strict<"stat", Stat.Options, object>
  | Strict<"heatmap", Heatmap.Options, Heatmap.FieldConfig>
  | Json<RowPanel>;

export type Checked = Json<Omit<Dashboard, "panels">> & { panels: AnyPanel[] };
