import { SerializerSelector } from '@fastify/fast-json-stringify-compiler'

type BuildCompiler = ReturnType<typeof SerializerSelector>
type Serializer = ReturnType<ReturnType<BuildCompiler>>
type Named = Parameters<BuildCompiler>[0]
type Options = Parameters<BuildCompiler>[1]
type NamedSchemas = Readonly<Record<string, unknown>>

const buildCompiler = SerializerSelector()
/** Serializers by their schema and the schemas that it refers to. */
const serializers = new Map<string, Serializer>()

/** Compiles a schema for its first response: most processes send few of the responses. */
export const buildSerializer: BuildCompiler = (namedSchemas, options) => (route) => {
  let serializer: Serializer | undefined
  return (response) => {
    serializer ??= compileOnce(namedSchemas, options, route)
    return serializer(response)
  }
}

/**
 * As Fastify does it, but equal schemas are compiled once, and each with only the named schemas that it refers to: most responses are the
 * same errors.
 */
export function compileOnce(
  namedSchemas: Named,
  options: Options,
  route: Parameters<ReturnType<BuildCompiler>>[0],
): Serializer {
  const usedSchemas = usedBy(route.schema, (namedSchemas ?? {}) as NamedSchemas) // Fastify passes them by name
  const key = JSON.stringify([route.schema, usedSchemas, options])
  const serializer = serializers.get(key) ?? buildCompiler(usedSchemas, options)(route)
  serializers.set(key, serializer)
  return serializer
}

/** The named schemas that a schema refers to, directly or through another one. */
function usedBy(schema: unknown, namedSchemas: NamedSchemas): NamedSchemas {
  const usedSchemas: Record<string, unknown> = {}
  const texts = [JSON.stringify(schema)]
  for (let text = texts.pop(); text !== undefined; text = texts.pop()) {
    for (const [, name = ''] of text.matchAll(/"\$ref":"([^"#]+)#/g)) {
      if (Object.hasOwn(usedSchemas, name) || !Object.hasOwn(namedSchemas, name)) continue
      usedSchemas[name] = namedSchemas[name]
      texts.push(JSON.stringify(namedSchemas[name]))
    }
  }
  return usedSchemas
}
