/** A JSON schema of an environment variable. Values are coerced, because environment variables are texts. */
export interface SettingSchema {
  readonly type: 'string' | 'integer' | 'number'
  /** The end of the sentence "NAME must be …" for an invalid value. */
  readonly description: string
  readonly [keyword: string]: unknown
}

/** The description of a setting in the documents. No interface, as for `Choice`. */
export type SettingMeaning = {
  /** In Markdown, without a full stop at the end. */
  readonly meaning: string
  /** Said instead of the default, in Markdown. */
  readonly whenNotSet?: string
  /** A value for `.env.example`; without one it shows the default. */
  readonly example?: string
}

/** A variable with its meaning, from which docs/settings.md and `.env.example` are generated. */
export function setting<const Schema extends SettingSchema>(
  schema: Schema,
  meaning: string,
  shown: Omit<SettingMeaning, 'meaning'> = {},
): Schema & SettingMeaning {
  return { ...schema, ...shown, meaning }
}

/** Keywords that say nothing about valid values. */
export const MEANING_KEYWORDS = [
  'meaning',
  'whenNotSet',
  'example',
] as const satisfies readonly (keyof SettingMeaning)[]

type Schemas = Readonly<Record<string, SettingSchema>>

type ValueOf<Schema> = Schema extends { readonly enum: readonly (infer Option)[] }
  ? Option
  : Schema extends { readonly type: 'string' }
    ? string
    : number

type NamesWithDefault<Variables> = {
  [Name in keyof Variables]: Variables[Name] extends { readonly default: unknown } ? Name : never
}[keyof Variables]

/** The valid values of variables: those without a default may be missing. */
export type ValuesOf<Variables extends Schemas> = {
  readonly [Name in NamesWithDefault<Variables>]: ValueOf<Variables[Name]>
} & {
  readonly [Name in Exclude<keyof Variables, NamesWithDefault<Variables>>]?: ValueOf<Variables[Name]>
}

export function text(description: string): { readonly type: 'string'; readonly description: string }
export function text(
  description: string,
  value: string,
): { readonly type: 'string'; readonly description: string; readonly default: string }
export function text(description: string, value?: string) {
  return { type: 'string', description, ...(value !== undefined && { default: value }) } as const
}

/** No interface: those have no index signature, as a `SettingSchema` needs it. */
type Choice<Option> = {
  readonly type: 'string'
  readonly enum: readonly Option[]
  readonly description: string
}

export function choice<const Option extends string>(options: readonly Option[]): Choice<Option>
export function choice<const Option extends string>(
  options: readonly Option[],
  value: NoInfer<Option>,
): Choice<Option> & { readonly default: Option }
export function choice(options: readonly string[], value?: string) {
  const description = `${options.slice(0, -1).join(', ')} or ${options.at(-1)}`
  return { type: 'string', enum: options, description, ...(value !== undefined && { default: value }) } as const
}

export function onOff(value: 'on' | 'off') {
  return choice(['on', 'off'], value)
}

/** A whole number, by its unit if it has one. */
export function number(min: number, max: number, value: number, unit?: string) {
  return { ...optionalNumber(min, max, unit), default: value } as const
}

export function optionalNumber(min: number, max: number, unit?: string) {
  const quantity = unit === undefined ? 'a number' : `a number of ${unit}`
  return { type: 'integer', minimum: min, maximum: max, description: `${quantity} from ${min} to ${max}` } as const
}

/** 0: unlimited. */
export function limit(value: number) {
  return { ...number(0, 1_000_000, value), description: 'a number from 0, which is no limit, to 1000000' } as const
}

/** 0: unlimited. */
export function byteLimit(value: number) {
  return { ...number(0, 2 ** 50, value), description: 'a number of bytes, or 0 for no limit' } as const
}

/** 0, where it is allowed: for ever. */
export function retentionDays(value: number, min: number) {
  const description = `a number of days from ${min === 0 ? '0, which is for ever,' : min} to 36500`
  return { ...number(min, 36_500, value), description } as const
}

export const folder = { type: 'string', minLength: 1, description: 'the path of a folder' } as const

export const httpAddress = text('an http or https address')
