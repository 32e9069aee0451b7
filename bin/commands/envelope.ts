import type { KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type Command, InvalidArgumentError } from 'commander'
import { isAddress } from '../../src/protocol/address.js'
import { entityFromJson } from '../../src/protocol/entities/entity-json.js'
import { readEntity, writeEntity } from '../../src/protocol/entities/entity-xml.js'
import { type Entity, isRelayable } from '../../src/protocol/entities/registry.js'
import { writeEncryptedEnvelope } from '../../src/protocol/envelopes/encrypted-envelope.js'
import { signMagicEnvelope } from '../../src/protocol/envelopes/magic-envelope.js'
import { ProtocolError } from '../../src/protocol/errors.js'
import { signRelayable } from '../../src/protocol/signatures/relayable-signature.js'
import { readPrivateKey, readPublicKey } from '../../src/protocol/signatures/rsa.js'
import { readXml } from '../../src/protocol/xml/xml.js'
import { CommandError } from '../command-error.js'
import { type Examined, examineEnvelope } from '../examine-envelope.js'
import { type OutputOptions, print } from '../output.js'
import { readInput } from '../read-input.js'

interface KeyHolder {
  readonly address: string
  readonly key: KeyObject
}

interface OpenOptions extends OutputOptions {
  readonly key: readonly KeyHolder[]
  readonly recipient?: KeyHolder
}

interface SealOptions extends OutputOptions {
  readonly sender: KeyHolder
  readonly authorKey?: KeyObject
  readonly for?: KeyObject
}

export function envelopeCommands(program: Command): void {
  const envelope = program
    .command('envelope')
    .description('Reads and writes magic envelopes, to debug federation between pods.')

  envelope
    .command('open [file]')
    .description(
      'Opens a public or encrypted envelope and shows its content, or why a pod rejects it. Without a file, it reads standard input.',
    )
    .option('--key <address=file>', 'public key (PEM) of a sender or author; may be repeated', addPublicKey, [])
    .option('--recipient <address=file>', 'private key (PEM) of the recipient of an encrypted message', readKeyHolder)
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod envelope open message.xml --key quin@q.example=quin.pem')
    .action(open)

  envelope
    .command('seal [file]')
    .description('Signs an entity, given as XML or JSON, in an envelope. Without a file, it reads standard input.')
    .requiredOption('--sender <address=file>', 'who sends it, with the private key (PEM)', readKeyHolder)
    .option(
      '--author-key <file>',
      'private key (PEM) of the author of a comment, like or vote: adds the signature',
      readPrivate,
    )
    .option('--for <file>', 'public key (PEM) of a recipient: encrypts the envelope', readPublic)
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod envelope seal post.xml --sender ann@p.example=ann.pem')
    .action(seal)
}

async function open(file: string | undefined, options: OpenOptions, command: Command): Promise<void> {
  const keys = new Map(options.key.map(({ address, key }) => [address, key]))
  const examination = examineEnvelope(await readInput(file, command), {
    keys,
    recipient: options.recipient,
    now: new Date(),
  })
  print(options, examination, linesOf(examination))
  if (!examination.accepted) throw new CommandError(`A pod rejects it: ${examination.fault}, ${examination.reason}.`)
}

function linesOf(examined: Examined): readonly string[] {
  if (!examined.accepted) return examined.claimed_sender ? [`It claims to be from ${examined.claimed_sender}.`] : []
  const { way, sender, author_signature: signature, entity } = examined
  return [
    `A ${way} message from ${sender}, signature valid: ${entity.entity_type}.`,
    ...(signature === 'absent' ? [] : [`The signature inside is ${signature}.`]),
    ...(needsOwnPost(examined) ? ['A pod accepts this only for a post of the same sender.'] : []),
    JSON.stringify(entity, null, 2),
  ]
}

/** The envelope does not contain the author of the root post. */
function needsOwnPost({ author_signature: signature, entity }: Extract<Examined, { accepted: true }>): boolean {
  return entity.property_order !== undefined && signature !== 'valid'
}

async function seal(file: string | undefined, options: SealOptions, command: Command): Promise<void> {
  const input = await readInput(file, command)
  const envelope = signMagicEnvelope(payloadOf(input, options.authorKey), options.sender.address, options.sender.key)
  const message = options.for ? writeEncryptedEnvelope(envelope, options.for) : envelope
  print(options, { message }, [message.trimEnd()])
}

/** The payload, checked as a pod would check it, otherwise unchanged. */
function payloadOf(input: string, authorKey: KeyObject | undefined): string {
  const isJson = input.trimStart().startsWith('{')
  try {
    const entity = isJson ? entityFromJson(parseJson(input), new Date()) : readPayload(input)
    if (authorKey !== undefined) return writeEntity(signEntity(entity, authorKey))
    if (!isJson) return input
    const payload = writeEntity(entity)
    readPayload(payload) // the JSON form also accepts nested entities
    return payload
  } catch (error) {
    if (error instanceof ProtocolError)
      throw new CommandError(`A pod would reject it: ${error.fault}, ${error.message}.`)
    throw error
  }
}

function readPayload(xml: string): Entity {
  return readEntity(readXml(xml, 'InvalidPayload'), new Date())
}

function signEntity(entity: Entity, authorKey: KeyObject): Entity {
  if (!isRelayable(entity)) throw new CommandError(`A ${entity.type} has no author signature.`)
  return { ...entity, author_signature: signRelayable(entity, authorKey) }
}

function parseJson(json: string): unknown {
  try {
    return JSON.parse(json.trim()) // without the byte order mark that some editors write
  } catch {
    throw new CommandError('The input begins like JSON but is not valid JSON.')
  }
}

function addPublicKey(words: string, before: readonly KeyHolder[]): readonly KeyHolder[] {
  const { address, file } = splitKeyOption(words)
  return [...before, { address, key: readPublic(file) }]
}

function readKeyHolder(words: string): KeyHolder {
  const { address, file } = splitKeyOption(words)
  return { address, key: readPrivate(file) }
}

function splitKeyOption(words: string) {
  const [, address = '', file = ''] = /^([^=]*)=(.+)$/.exec(words) ?? []
  if (!isAddress(address))
    throw new InvalidArgumentError('Expected an address and a file, like alice@pod.example=alice.pem.')
  return { address, file }
}

function readPublic(file: string): KeyObject {
  return readKey(file, readPublicKey, 'a public RSA key')
}

function readPrivate(file: string): KeyObject {
  return readKey(file, readPrivateKey, 'a private RSA key')
}

function readKey(file: string, read: (pem: string) => KeyObject | undefined, what: string): KeyObject {
  let pem: string
  try {
    pem = readFileSync(file, 'utf8')
  } catch {
    throw new InvalidArgumentError(`${file} cannot be read.`)
  }
  const key = read(pem)
  if (key === undefined) throw new InvalidArgumentError(`${file} does not contain ${what} in PEM.`)
  return key
}
