import type { FastifyInstance } from 'fastify'

/**
 * Writes coordinates with a decimal point and without an exponent, `1.0` and not `1`: typed clients read a whole number as another
 * type and fail. JavaScript has one type of number, so the JSON text is changed. Texts of people never match, because quotes in
 * them are escaped.
 */
export function addDecimalPoints(app: FastifyInstance): void {
  app.addHook('onSend', (_request, _reply, payload, done) => {
    done(null, typeof payload === 'string' ? withDecimalPoints(payload) : payload)
  })
}

/** A whole number or one with an exponent, which is how very small and very large ones are written. */
const WITHOUT_POINT = /"(lat|lng)":(-?\d+(?=[,}])|-?[\d.]+e[-+]\d+)/g

export function withDecimalPoints(json: string): string {
  // Without the opening quote, which occurs so often in JSON that the search would be slow.
  if (!json.includes('lat":')) return json
  return json.replace(WITHOUT_POINT, (_, name, number) => `"${name}":${withDecimalPoint(number)}`)
}

function withDecimalPoint(number: string): string {
  const [, sign = '', whole = '', fraction = '', power] = /^(-?)(\d)\.?(\d*)e(.+)$/.exec(number) ?? []
  if (power === undefined) return `${number}.0`
  const digits = whole + fraction
  const places = Number(power)
  // JavaScript writes an exponent only if all digits are on one side of the point.
  return places < 0 ? `${sign}0.${'0'.repeat(-places - 1)}${digits}` : `${sign}${digits.padEnd(places + 1, '0')}.0`
}
