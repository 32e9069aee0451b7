import { type Static, type TSchema, Type } from 'typebox'

/** A value or null. The key is always present. */
export function nullable<Schema extends TSchema>(schema: Schema) {
  return Type.Unsafe<Static<Schema> | null>({ ...schema, type: [Reflect.get(schema, 'type'), 'null'] })
}

/** A reference to a named schema, which the API description contains once. */
export function refTo<Schema extends TSchema>(schema: Schema, description?: string) {
  const $ref = `${Reflect.get(schema, '$id')}#`
  return Type.Unsafe<Static<Schema>>(description === undefined ? { $ref } : { $ref, description })
}
