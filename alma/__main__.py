from alma.cli import main

main()
