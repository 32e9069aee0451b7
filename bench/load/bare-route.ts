import { fastify } from 'fastify'
import { listen } from './listen.js'

/** A process with a plain Fastify route that reads each posted body and responds 202. */
const app = fastify()
app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body))
app.post('/receive/public', async (_request, reply) => reply.code(202).send())
process.send?.({ address: `http://127.0.0.1:${await listen(app)}` })
