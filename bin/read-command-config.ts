import { type Config, readConfig } from '../src/config/config.js'
import { isRunning, readStoredAddress } from '../src/config/stored-address.js'
import { CommandError } from './command-error.js'

/** The settings of a command. Without POD_URL and PORT, or with any port (0), it takes the address of the pod whose data folder it uses. */
export async function readCommandConfig(environment: NodeJS.ProcessEnv): Promise<Config> {
  const config = readConfig(environment)
  const { POD_URL, PORT } = environment
  if (POD_URL || (PORT && PORT !== '0')) return config
  const storedAddress = await readStoredAddress(config.dataDir)
  if (storedAddress === undefined) return config
  const { protocol, hostname, port } = new URL(storedAddress.url)
  // The default of POD_URL, from which PORT can be read.
  const isDefault = protocol === 'http:' && hostname === 'localhost' && port !== ''
  return readConfig({ ...environment, POD_URL: storedAddress.url, ...(isDefault && { PORT: port }) })
}

/** The address of an account is permanent: accounts are created only under the address of the running pod. */
export async function refuseOtherAddress(config: Config): Promise<void> {
  const storedAddress = await readStoredAddress(config.dataDir)
  if (
    storedAddress === undefined ||
    !isRunning(storedAddress) ||
    new URL(storedAddress.url).host === new URL(config.url).host
  )
    return
  throw new CommandError(
    `The pod in ${config.dataDir} runs at ${storedAddress.url}, and by the settings of this command it is ${config.url}: leave out POD_URL and PORT, or set them as the pod has them.`,
  )
}
