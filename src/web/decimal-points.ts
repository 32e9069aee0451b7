import type { FastifyInstance } from 'fastify'

/**
 * Coordinates are written with a decimal point, `1.0` and not `1`: typed clients read a whole number as another type and
 * fail. JSON has one type of number, so this is done to its text. A text of a person cannot be hit: quotes in it are escaped.
 */
export function addDecimalPoints(app: FastifyInstance): void {
  app.addHook('onSend', (_request, _reply, payload, done) => {
    done(null, typeof payload === 'string' ? withDecimalPoints(payload) : payload)
  })
}

export function withDecimalPoints(json: string): string {
  // Without its first quote: there are quotes everywhere, and each of them would be looked behind.
  return json.includes('lat":') ? json.replace(/"(lat|lng)":(-?\d+)(?=[,}])/g, '"$1":$2.0') : json
}
